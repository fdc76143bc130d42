// SPDX-License-Identifier: Apache-2.0
// Compares Baton's tokenizer with Hugging Face's own, and says where they part.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { TEXTS } from './corpus.mjs';
import { askTokenizer } from './program.mjs';

const require = createRequire(import.meta.url);
export const { Tokenizer } = require('tokenizers');

const BATCH = 500;
const SHOWN = 5;

async function inBatches(list, ask) {
  const answers = [];
  for (let i = 0; i < list.length; i += BATCH) answers.push(...(await ask(list.slice(i, i + BATCH))));
  return answers;
}

export async function encodeAll(library, texts, addSpecialTokens) {
  const encode = async (batch) => (await library.encodeBatch(batch, { addSpecialTokens })).map((e) => e.getIds());
  return inBatches(texts, encode);
}

export const decodeAll = (library, lists, skip) => inBatches(lists, (batch) => library.decodeBatch(batch, skip));

export const escaped = (text) =>
  JSON.stringify(text).replace(/[^ -~]/gu, (c) => (c.length === 1 ? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}` : `\\u{${c.codePointAt(0).toString(16)}}`));

const same = (a, b) => a === b || (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((x, i) => x === b[i]));

function difference({ kind, subject, expected, actual }, library) {
  const shown = typeof subject === 'string' ? subject : `[${subject}]`;
  const head = `  ${kind} ${escaped(shown.length > 400 ? `${shown.slice(0, 400)}…` : shown)}`;
  if (!Array.isArray(expected) || !Array.isArray(actual)) {
    return `${head}\n    expected ${escaped(JSON.stringify(expected))}\n    got      ${escaped(JSON.stringify(actual))}`;
  }
  const first = expected.findIndex((id, i) => id !== actual[i]);
  const at = Math.max(0, (first < 0 ? expected.length : first) - 3);
  const part = (ids) => ids.slice(at, at + 10).map((id) => `${id}:${escaped(library.idToToken(id) ?? '')}`).join(' ');
  return `${head}\n    from token ${at} of ${expected.length} expected, ${actual.length} got\n    expected ${part(expected)}\n    got      ${part(actual)}`;
}

// Asks Baton everything in one run and fails with the shortest differences. `cases` are
// { kind, subject, expected }; `expected` may be a function that says whether an answer is right.
export async function agree(name, folder, library, cases) {
  const answers = await askTokenizer(folder, cases.map(({ kind, subject }) => [kind, subject]));
  const wrong = [];
  cases.forEach((one, i) => {
    const right = typeof one.expected === 'function' ? one.expected(answers[i]) : same(one.expected, answers[i]);
    if (!right) wrong.push({ ...one, actual: answers[i] });
  });
  wrong.sort((a, b) => a.subject.length - b.subject.length);
  assert.equal(wrong.length, 0,
    `${name}: ${wrong.length} of ${cases.length} differ; the shortest:\n${wrong.slice(0, SHOWN).map((one) => difference(one, library)).join('\n')}`);
}

// What is to be compared for a list of texts: ids, and what becomes of them on the way back. `special`: how
// the library's ids become those with special tokens, where its file does not say.
export async function casesFor(library, texts, special = null) {
  const plain = await encodeAll(library, texts, false);
  const cases = texts.map((subject, i) => ({ kind: 'encode', subject, expected: plain[i] }));
  // Special tokens do not depend on the text, so some of the texts suffice.
  const some = texts.map((_, i) => i).filter((i) => i % 16 === 0);
  const some_texts = some.map((i) => texts[i]);
  const with_special = special ? some.map((i) => special(plain[i])) : await encodeAll(library, some_texts, true);
  some.forEach((i, k) => cases.push({ kind: 'encode_special', subject: texts[i], expected: with_special[k] }));
  const every_third = plain.filter((_, i) => i % 3 === 0);
  cases.push(...(await decodeCases(library, [...every_third, ...with_special])));
  return cases;
}

// Conversations that grow turn by turn, which a cache knows ever more of.
export async function cachedCases(library, random, marks) {
  const texts = [];
  for (let conversation = 0; conversation < 12; ++conversation) {
    let text = '';
    for (let turn = 0; turn < 12; ++turn) {
      text += random.of(marks) + random.of(['', '\n', '  ']) + random.of(TEXTS).slice(0, random.between(0, 900)) + random.of(['', '\n', ' ', 'x']);
      texts.push(text);
    }
  }
  const expected = await encodeAll(library, texts, false);
  return texts.map((subject, i) => ({ kind: 'encode_cached', subject, expected: expected[i] }));
}

export async function decodeCases(library, lists) {
  const kept = await decodeAll(library, lists, false);
  const skipped = await decodeAll(library, lists, true);
  return lists.flatMap((subject, i) => [
    { kind: 'decode', subject, expected: kept[i] },
    { kind: 'decode_skipping', subject, expected: skipped[i] },
  ]);
}
