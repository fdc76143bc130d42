// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Writes unicode_data.cc and unicode_sets.cc next to it: facts of the Unicode versions that the
// Hugging Face tokenizers are built with. Run by hand where a version below changes, with a Node.js
// of Unicode 17:
//
//   npm install --prefix FOLDER @unicode/unicode-{8,9,16,17}.0.0
//   node src/libs/tokenizer/text/make_unicode_data.mjs FOLDER
//
// Regular expressions are Oniguruma's (16.0), `char` is Rust's (17.0), graphemes are those of
// unicode-segmentation (17.0), normal forms those of unicode-normalization-alignments (9.0), Bert's
// categories those of unicode_categories (8.0).

import fs from 'node:fs';
import path from 'node:path';

if (process.versions.unicode !== '17.0') throw new Error('needs a Node.js with Unicode 17.0');

const root = path.resolve(process.argv[2], 'node_modules/@unicode');
const LIMIT = 0x110000;
const isSurrogate = (c) => c >= 0xd800 && c < 0xe000;

async function load(version, name) {
  return (await import(`${root}/unicode-${version}.0.0/${name}/code-points.mjs`)).default;
}
async function members(version, ...names) {
  const set = new Set();
  for (const name of names)
    for (const c of await load(version, name)) if (!isSurrogate(c)) set.add(c);
  return set;
}

// Numbers of seven bits a byte, the lowest first, as printable text.
function pack(numbers) {
  const bytes = [];
  for (let n of numbers) {
    for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) | 128);
    bytes.push(n);
  }
  return Buffer.from(bytes).toString('base64');
}
// Members as pairs: how many code points are left out, how many more than one belong.
function packSet(set) {
  const numbers = [];
  let next = 0;
  for (let c = 0; c < LIMIT; c++) {
    if (!set.has(c)) continue;
    let last = c;
    while (set.has(last + 1)) last++;
    numbers.push(c - next, last - c);
    next = last + 1;
    c = last;
  }
  return pack(numbers);
}
const zigzag = (n) => (n < 0 ? -2 * n - 1 : 2 * n);
// A map between code points as runs of one stride and one difference: gap, stride, count, difference.
function packMap(map) {
  const keys = [...map.keys()].sort((a, b) => a - b);
  const numbers = [];
  let next = 0;
  for (let i = 0; i < keys.length;) {
    const difference = map.get(keys[i]) - keys[i];
    const same = (j) => j < keys.length && map.get(keys[j]) - keys[j] === difference;
    const stride = same(i + 1) && keys[i + 1] - keys[i] <= 2 ? keys[i + 1] - keys[i] : 1;
    let count = 1;
    while (same(i + count) && keys[i + count] - keys[i + count - 1] === stride) count++;
    numbers.push(keys[i] - next, stride, count, zigzag(difference));
    next = keys[i + count - 1] + 1;
    i += count;
  }
  return pack(numbers);
}

// The order is that of CharKind.
const KINDS = ['Uppercase_Letter', 'Lowercase_Letter', 'Titlecase_Letter', 'Modifier_Letter',
  'Other_Letter', 'Nonspacing_Mark', 'Spacing_Mark', 'Enclosing_Mark', 'Decimal_Number',
  'Letter_Number', 'Other_Number', 'Connector_Punctuation', 'Dash_Punctuation', 'Open_Punctuation',
  'Close_Punctuation', 'Initial_Punctuation', 'Final_Punctuation', 'Other_Punctuation',
  'Math_Symbol', 'Currency_Symbol', 'Modifier_Symbol', 'Other_Symbol', 'Space_Separator',
  'Line_Separator', 'Paragraph_Separator', 'Control', 'Format', 'Surrogate', 'Private_Use',
  'Unassigned'];
const CONTROL_SPACE = KINDS.length;

function packRuns(kinds) {
  const numbers = [];
  for (let c = 0; c < LIMIT;) {
    let end = c;
    while (end < LIMIT && kinds[end] === kinds[c]) end++;
    numbers.push((end - c) * 32 + kinds[c]);
    c = end;
  }
  return pack(numbers);
}

async function packKinds() {
  const kinds = new Uint8Array(LIMIT).fill(KINDS.indexOf('Unassigned'));
  for (const [index, name] of KINDS.entries())
    for (const c of await load(16, `General_Category/${name}`)) kinds[c] = index;
  for (const c of [9, 10, 11, 12, 13, 0x85]) kinds[c] = CONTROL_SPACE;
  return packRuns(kinds);
}

const everyCharacter = function* () {
  for (let c = 0; c < LIMIT; c++) if (!isSurrogate(c)) yield [c, String.fromCodePoint(c)];
};

// The order is that of GraphemeKind. All Hangul syllables are LVT; which are LV is easily counted.
const GRAPHEME_KINDS = ['Other', 'CR', 'LF', 'Control', 'Extend', 'ZWJ', 'Regional_Indicator',
  'Prepend', 'SpacingMark', 'L', 'V', 'T', 'LVT'];
const [PICTOGRAPH, CONSONANT, LINKER, NON_JOINER] = [13, 14, 15, 16];

async function packGraphemes() {
  const kinds = new Uint8Array(LIMIT);
  for (const c of await members(17, 'Binary_Property/Extended_Pictographic')) kinds[c] = PICTOGRAPH;
  for (const [index, name] of GRAPHEME_KINDS.entries())
    if (index > 0)
      for (const c of await load(17, `Grapheme_Cluster_Break/${name}`)) kinds[c] = index;
  for (let c = 0xac00; c <= 0xd7a3; c++) kinds[c] = GRAPHEME_KINDS.indexOf('LVT');
  // Which characters form conjuncts (rule GB9c) is asked from the segmenter itself.
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
  const isOne = (text) => [...segmenter.segment(text)].length === 1;
  const [ka, virama] = ['\u0915', '\u094d'];
  const extend = GRAPHEME_KINDS.indexOf('Extend');
  for (const [c, s] of everyCharacter()) {
    if (kinds[c] === 0 && isOne(s + virama + ka)) kinds[c] = CONSONANT;
    else if (kinds[c] === extend && isOne(ka + s + ka)) kinds[c] = LINKER;
    else if (kinds[c] === extend && !isOne(ka + virama + s + ka)) kinds[c] = NON_JOINER;
  }
  return packRuns(kinds);
}

async function namedSets() {
  const sets = {};
  for (const script of fs.readdirSync(`${root}/unicode-16.0.0/Script`).filter((n) => !n.includes('.')))
    sets[script] = await members(16, `Script/${script}`);
  for (const name of ['Alphabetic', 'Lowercase', 'Uppercase', 'Emoji', 'Extended_Pictographic'])
    sets[name] = await members(16, `Binary_Property/${name}`);
  return sets;
}

async function internalSets() {
  const category = (name) => `General_Category/${name}`;
  const sets = {
    RustNumeric: await members(17, category('Number')),
    Unicode8Punctuation: await members(8, category('Punctuation')),
    Unicode8NonspacingMark: await members(8, category('Nonspacing_Mark')),
    Unicode8Control: await members(8, category('Control'), category('Format'), category('Private_Use')),
    Unicode9Mark: await members(9, category('Mark')),
  };
  // Characters that a normal form changes or that may join with the one before them. Marks are
  // among them for their order. More than needed does no harm: it is looked at twice.
  const marks = await members(17, category('Mark'));
  const seconds = new Set(marks);
  for (const [c, s] of everyCharacter()) {
    const parts = [...s.normalize('NFD')];
    if (parts.length > 1 && !(c >= 0xac00 && c <= 0xd7a3))
      for (const part of parts.slice(1)) seconds.add(part.codePointAt(0));
  }
  for (let c = 0x1161; c <= 0x1175; c++) seconds.add(c);
  for (let c = 0x11a8; c <= 0x11c2; c++) seconds.add(c);
  for (const form of ['NFC', 'NFD', 'NFKC', 'NFKD']) {
    const set = new Set(form.endsWith('C') ? seconds : marks);
    for (const [c, s] of everyCharacter()) if (s.normalize(form) !== s) set.add(c);
    sets[`Unsafe${form}`] = set;
  }
  // What normal forms know today but did not in Unicode 9.
  const unassigned = await members(9, category('Unassigned'));
  sets.NotInUnicode9 = new Set();
  for (const [c, s] of everyCharacter())
    if (unassigned.has(c) && (marks.has(c) || s.normalize('NFKD') !== s)) sets.NotInUnicode9.add(c);
  return sets;
}

function lowercase() {
  const map = new Map();
  for (const [c, s] of everyCharacter()) {
    const lower = [...s.toLowerCase()];
    // The one character with two (U+0130) is written out in the code.
    if (lower.length === 1 && lower[0] !== s) map.set(c, lower[0].codePointAt(0));
  }
  return map;
}

function cpp(text, indent) {
  const lines = [];
  for (let i = 0; i < text.length; i += 91) lines.push(`${indent}"${text.slice(i, i + 91)}"`);
  return lines.length ? lines.join('\n') : `${indent}""`;
}
const normalName = (name) => name.toLowerCase().replaceAll(/[ _-]/g, '');

const folds = new Map();
for (const kind of ['C', 'S'])
  for (const [from, to] of await load(16, `Case_Folding/${kind}`)) folds.set(from, to);
const multi = [];
for (const [from, to] of await load(16, 'Case_Folding/F')) multi.push(from, to.length, ...to);

function file(content) {
  return `// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Written by make_unicode_data.mjs; do not edit. Facts of the Unicode Character Database.
#include "libs/tokenizer/text/unicode_data.h"

// clang-format off
namespace baton::tokenizer::unicode_data {

${content}

}  // namespace baton::tokenizer::unicode_data
`;
}
function write(name, content) {
  fs.writeFileSync(path.join(import.meta.dirname, name), file(content));
}

const data = Object.entries({
  Kinds: await packKinds(),
  GraphemeKinds: await packGraphemes(),
  Lowercase: packMap(lowercase()),
  CaseFolding: packMap(folds),
  LongCaseFolding: pack(multi),
});
for (const [name, set] of Object.entries(await internalSets())) data.push([name, packSet(set)]);
write('unicode_data.cc', data
  .map(([name, packed]) => `const std::string_view k${name} =\n${cpp(packed, '    ')};`)
  .join('\n\n'));

const sets = [];
for (const [name, set] of Object.entries(await namedSets())) {
  const start = `    {"${normalName(name)}",`;
  const packed = cpp(packSet(set), '     ');
  const oneLine = `${start} ${packed.trim()}},`;
  sets.push(oneLine.length <= 100 ? oneLine : `${start}\n${packed}},`);
}
write('unicode_sets.cc', `const NamedSet kNamedSets[] = {\n${sets.join('\n')}\n};
const std::size_t kNamedSetCount = std::size(kNamedSets);`);
