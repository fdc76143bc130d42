// SPDX-License-Identifier: Apache-2.0
// Relatives of the packaged models: their files with what other models of the same families have instead. Smaller
// vocabularies keep it quick; the rules are the same.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { agree, cachedCases, casesFor, Tokenizer } from './support/compare.mjs';
import { lookAlikes, ODDITIES, TEXTS } from './support/corpus.mjs';
import { tokenizerOf } from './support/models.mjs';
import { Random, randomTexts } from './support/random.mjs';
import { BYTES } from './support/vocabulary.mjs';

const RANDOM_TEXTS = 1_000;

const pairOf = (merge) => (Array.isArray(merge) ? merge : merge.split(' '));
const asPairs = (file) => { file.model.merges = file.model.merges.map(pairOf); };
const asStrings = (file) => { file.model.merges = file.model.merges.map((merge) => pairOf(merge).join(' ')); };

// The first tokens of a model, the added ones, and the merges that make no others.
function smaller(model, size) {
  const file = tokenizerOf(model);
  const vocab = Object.fromEntries(Object.entries(file.model.vocab).filter(([, id]) => id < size));
  const merges = file.model.merges.filter((merge) => {
    const [a, b] = pairOf(merge);
    return [a, b, a + b].every((token) => Object.hasOwn(vocab, token));
  });
  let next = size;
  const added_tokens = file.added_tokens.filter((_, i) => i < 60).map((token) => ({ ...token, id: vocab[token.content] ?? next++ }));
  return { ...file, added_tokens, post_processor: null, model: { ...file.model, vocab, merges } };
}

const pattern = (...regexes) => (file) => {
  const splits = regexes.map((Regex) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false }));
  file.pre_tokenizer = { type: 'Sequence', pretokenizers: [...splits, { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false }] };
};
const steps = (...pretokenizers) => (file) => { file.pre_tokenizer = { type: 'Sequence', pretokenizers }; };
const normalizer = (json) => (file) => { file.normalizer = json; };
const model = (changes) => (file) => { Object.assign(file.model, changes); };
const byteLevel = (use_regex) => ({ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex });
const metaspace = (prepend_scheme, split) => (file) => {
  file.normalizer = null;
  file.pre_tokenizer = { type: 'Metaspace', replacement: '▁', prepend_scheme, split };
};
const added = (...tokens) => (file) => {
  const first = Object.keys(file.model.vocab).length + file.added_tokens.length;
  tokens.forEach(([content, more], i) =>
    file.added_tokens.push({ id: first + i, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more }));
};

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const END = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';

const variants = [
  ['llama3_1', 'merges as pairs', asPairs],
  ['llama3_1', 'merges that are not ignored', model({ ignore_merges: false })],
  ['llama3_1', 'single digits', pattern(`${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${END}`)],
  ['llama3_1', 'two digits', pattern(`${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,2}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${END}`)],
  ['llama3_1', 'possessive pattern', pattern("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s")],
  ['llama3_1', 'marks among the letters', pattern(`${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${END}`)],
  ['llama3_1', 'digits from the right', pattern('\\p{N}{1,3}(?=(?:\\p{N}{3})*(?:\\P{N}|$))', `[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${END}`)],
  ['llama3_1', 'NFKC and a prefix', normalizer({ type: 'Sequence', normalizers: [{ type: 'NFKC' }, { type: 'Prepend', prepend: '!' }] })],
  ['llama3_1', 'other added tokens', added(['<|tool|>', { rstrip: true }], ['<think>', { special: false }], ['</think>', { special: false, normalized: true }], ['  ', { special: false }])],
  ['qwen2_5', 'merges as pairs', asPairs],
  ['qwen2_5', 'no normalizer', normalizer(null)],
  ['qwen2_5', 'ignored merges', model({ ignore_merges: true })],
  ['qwen2_5', "GPT-2's pattern", steps(byteLevel(true))],
  ['qwen2_5', "StarCoder's digits", steps({ type: 'Digits', individual_digits: true }, byteLevel(true))],
  ['qwen2_5', "Falcon's steps", steps({ type: 'Punctuation', behavior: 'Contiguous' }, byteLevel(true), { type: 'Digits', individual_digits: false }, { type: 'Split', pattern: { Regex: '[0-9][0-9][0-9]' }, behavior: 'Isolated', invert: false })],
  ['qwen3', 'merges as strings', asStrings],
  ['deepseek_v3', 'merges as pairs', asPairs],
  ['deepseek_v3', 'normalized added tokens with NFC', normalizer({ type: 'NFC' })],
  ['deepseek_v3', "its coder's older steps", steps(...['[\\r\\n]', "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+", '\\s?[!-/:-~！-／：-～‘-‟　-。]+', '\\s+$', '[一-龥ࠀ-一가-퟿]+'].map((Regex) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false })), { type: 'Digits', individual_digits: true }, byteLevel(false))],
  ['mistral_nemo', 'merges that are not ignored', model({ ignore_merges: false })],
  ['gpt4o', 'Isolated instead of Removed and inverted', (file) => Object.assign(file.pre_tokenizer.pretokenizers[0], { behavior: 'Isolated', invert: false })],
  ['gpt4o', 'no contractions', (file) => { file.pre_tokenizer.pretokenizers[0].pattern.Regex = file.pre_tokenizer.pretokenizers[0].pattern.Regex.replaceAll("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", ''); }],
  ['llama2', 'Metaspace at the first place', metaspace('first', false)],
  ['llama2', 'Metaspace everywhere, split', metaspace('always', true)],
  ['llama2', 'Metaspace nowhere', metaspace('never', false)],
  ['llama2', 'unknowns apart', model({ fuse_unk: false, byte_fallback: false })],
  ['llama2', "Phi-3's added tokens", added(['<|end|>', { rstrip: true }], ['<|user|>', { rstrip: true }], ['<|assistant|>', { rstrip: true }])],
  ['gemma2', 'no pre-tokenizer', (file) => { file.pre_tokenizer = null; }],
  ['gemma2', 'merges as pairs', asPairs],
];

describe('variants', () => {
  let root;
  before(() => { root = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-golden-')); });
  after(() => fs.rmSync(root, { recursive: true, force: true }));

  const originals = new Map();
  const copyOf = (name) => {
    if (!originals.has(name)) originals.set(name, JSON.stringify(smaller(name, 20_000)));
    return JSON.parse(originals.get(name));
  };

  variants.forEach(([name, what, change], number) => {
    test(`${name}: ${what}`, async () => {
      const file = copyOf(name);
      change(file);
      const json = JSON.stringify(file);
      const folder = path.join(root, String(number));
      fs.mkdirSync(folder);
      fs.writeFileSync(path.join(folder, 'tokenizer.json'), json);
      const library = Tokenizer.fromString(json);
      const tokens = file.added_tokens.map(({ content }) => content);
      const texts = [...TEXTS, ...ODDITIES, ...lookAlikes(tokens),
        ...randomTexts(new Random(number), RANDOM_TEXTS, { added: tokens, texts: TEXTS, decoded: [] })];
      const marks = [...tokens.slice(0, 6), ...tokens.slice(-6)];
      await agree(`${name}, ${what}`, folder, library, [
        ...(await casesFor(library, texts)), ...(await cachedCases(library, new Random(number), marks))]);
    });
  });

  test('gpt4o: as a rank file of tiktoken', async () => {
    const file = copyOf('gpt4o');
    const library = Tokenizer.fromString(JSON.stringify(file));
    const folder = path.join(root, 'tiktoken');
    fs.mkdirSync(folder);
    const bytes = (token) => Buffer.from(Array.from(token, (letter) => BYTES.indexOf(letter)));
    const ranks = Object.entries(file.model.vocab).map(([token, rank]) => `${bytes(token).toString('base64')} ${rank}\n`);
    fs.writeFileSync(path.join(folder, 'tiktoken.model'), ranks.join(''));
    fs.writeFileSync(path.join(folder, 'tokenizer_config.json'), JSON.stringify({
      pat_str: file.pre_tokenizer.pretokenizers[0].pattern.Regex,
      added_tokens_decoder: Object.fromEntries(file.added_tokens.map(({ id, ...token }) => [id, token])),
    }));
    const tokens = file.added_tokens.map(({ content }) => content);
    const texts = [...TEXTS, ...ODDITIES, ...lookAlikes(tokens), ...randomTexts(new Random(77), RANDOM_TEXTS, { added: tokens, texts: TEXTS, decoded: [] })];
    await agree('gpt4o, tiktoken', folder, library, await casesFor(library, texts));
  });

  // transformers switches off what a file says about cutting and filling before each call.
  test('llama2: a length to cut to and to fill to is not obeyed', async () => {
    const file = copyOf('llama2');
    const library = Tokenizer.fromString(JSON.stringify(file));
    file.truncation = { direction: 'Right', max_length: 8, strategy: 'LongestFirst', stride: 0 };
    file.padding = { strategy: { Fixed: 16 }, direction: 'Right', pad_to_multiple_of: null, pad_id: 2, pad_type_id: 0, pad_token: '</s>' };
    const folder = path.join(root, 'cut');
    fs.mkdirSync(folder);
    fs.writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(file));
    await agree('llama2, cut', folder, library, await casesFor(library, TEXTS));
  });
});
