// SPDX-License-Identifier: Apache-2.0
// What tokenizer.json files may say and the packaged models do not: small files made here, compared with the
// library on random texts.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { charsmap, compatible } from './support/charsmap.mjs';
import { agree, casesFor, encodeAll, Tokenizer } from './support/compare.mjs';
import { lookAlikes, ODDITIES, TEXTS } from './support/corpus.mjs';
import { askTokenizer } from './support/program.mjs';
import { Random, randomTexts } from './support/random.mjs';
import { BYTES, byteTokens, inBytes, learnMerges, numbered, scoredPieces } from './support/vocabulary.mjs';

const RANDOM_TEXTS = 1_000;
const MERGES = 700;

const units = (text) => Array.from(text);
const under = (text) => text.replaceAll(' ', '▁');
const learnt = {
  bytes: learnMerges(MERGES, (word) => units(inBytes(word))),
  underscored: learnMerges(MERGES, (word) => units(under(word))),
  suffixed: learnMerges(MERGES, (word) => units(word.trim()).map((c, i, all) => (i === all.length - 1 ? `${c}</w>` : c))),
  prefixed: learnMerges(MERGES, (word) => units(word.trim()).map((c, i) => (i ? `##${c}` : c)), (a, b) => a + b.replace(/^##/, '')),
};

const bpe = (learning, more = {}, extra = []) => ({
  type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false,
  byte_fallback: false, ignore_merges: false, vocab: numbered([...extra, ...learning.tokens]),
  merges: learning.merges.map(([a, b]) => `${a} ${b}`), ...more,
});
const byteBpe = (more) => bpe(learnt.bytes, more, ['<unk>', '<s>', '</s>', ...BYTES]);
const underBpe = (more) => bpe(learnt.underscored, { unk_token: '<unk>', ...more }, ['<unk>', '<s>', '</s>', ...byteTokens()]);
const wordPiece = (more) => ({
  type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100,
  vocab: numbered(['[PAD]', '[UNK]', '[CLS]', '[SEP]', ...scoredPieces(1500, (w) => w.trim().toLowerCase()).map(([p]) => p),
    ...scoredPieces(1500, (w) => w.trim().toLowerCase(), 4).map(([p]) => `##${p}`), ...'.,;:!?()"\'-']), ...more,
});
const unigram = (more) => ({
  type: 'Unigram', unk_id: 0, byte_fallback: false,
  vocab: [['<unk>', 0], ['<s>', 0], ['</s>', 0], ...scoredPieces(1500, under)], ...more,
});
const wordLevel = (words) => ({ type: 'WordLevel', unk_token: '<unk>', vocab: numbered(['<unk>', '<s>', '</s>', ...words]) });
const precompiled = (replacements) => ({ type: 'Precompiled', precompiled_charsmap: charsmap(replacements) });
const token = (content, id, more = {}) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more });
const SPECIALS = [token('<unk>', 0), token('<s>', 1), token('</s>', 2)];
// Tokens the model does not have are numbered behind it, as the library does.
function file(parts) {
  const { vocab } = parts.model;
  let next = Array.isArray(vocab) ? vocab.length : Object.keys(vocab).length;
  const known = new Set(Array.isArray(vocab) ? vocab.map(([piece]) => piece) : Object.keys(vocab));
  const added_tokens = (parts.added_tokens ?? SPECIALS).map((one) => (known.has(one.content) ? one : { ...one, id: next++ }));
  return { version: '1.0', truncation: null, padding: null, normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, ...parts, added_tokens };
}
const sequence = (field, list) => ({ type: 'Sequence', [field]: list });
const byteLevel = (more = {}) => ({ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true, ...more });
const metaspace = (more = {}) => ({ type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true, ...more });
const split = (pattern, behavior, invert = false) => ({ type: 'Split', pattern, behavior, invert });
const beforeBytes = (...steps) => sequence('pretokenizers', [...steps, byteLevel({ use_regex: false })]);
const BEHAVIORS = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'];

const files = {
  'ByteLevel with its own pattern': file({ model: byteBpe(), pre_tokenizer: byteLevel(), decoder: byteLevel() }),
  'ByteLevel with a prefix space': file({ model: byteBpe(), pre_tokenizer: byteLevel({ add_prefix_space: true }), decoder: byteLevel() }),
  'ByteLevel with a prefix space and no pattern': file({ model: byteBpe(), pre_tokenizer: byteLevel({ add_prefix_space: true, use_regex: false }), decoder: byteLevel() }),
  'merges as pairs': file({ model: byteBpe({ merges: learnt.bytes.merges }), pre_tokenizer: byteLevel(), decoder: byteLevel() }),
  'ignore_merges': file({ model: byteBpe({ ignore_merges: true }), pre_tokenizer: byteLevel(), decoder: byteLevel() }),
  'BPE with byte fallback': file({ model: underBpe({ byte_fallback: true }), normalizer: sequence('normalizers', [{ type: 'Prepend', prepend: '▁' }, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }]),
    decoder: sequence('decoders', [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }]) }),
  'BPE with unknowns': file({ model: underBpe(), pre_tokenizer: metaspace(), decoder: metaspace() }),
  'BPE with fused unknowns': file({ model: underBpe({ fuse_unk: true }), pre_tokenizer: metaspace(), decoder: metaspace() }),
  'BPE that leaves unknowns out': file({ model: bpe(learnt.underscored, {}, ['<unk>', '<s>', '</s>']), pre_tokenizer: metaspace() }),
  'end_of_word_suffix': file({ model: bpe(learnt.suffixed, { end_of_word_suffix: '</w>', unk_token: '<unk>' }, ['<unk>', '<s>', '</s>']), pre_tokenizer: { type: 'Whitespace' }, decoder: { type: 'BPEDecoder', suffix: '</w>' } }),
  'continuing_subword_prefix': file({ model: bpe(learnt.prefixed, { continuing_subword_prefix: '##', unk_token: '<unk>' }, ['<unk>', '<s>', '</s>']), pre_tokenizer: { type: 'WhitespaceSplit' }, decoder: { type: 'WordPiece', prefix: '##', cleanup: true } }),
  'BERT': file({ added_tokens: [token('[PAD]', 0), token('[UNK]', 1), token('[CLS]', 2), token('[SEP]', 3)], model: wordPiece(), pre_tokenizer: { type: 'BertPreTokenizer' },
    normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    post_processor: { type: 'BertProcessing', sep: ['[SEP]', 3], cls: ['[CLS]', 2] }, decoder: { type: 'WordPiece', prefix: '##', cleanup: true } }),
  'BERT with case and accents': file({ added_tokens: [token('[UNK]', 1)], model: wordPiece({ max_input_chars_per_word: 12 }), pre_tokenizer: { type: 'BertPreTokenizer' },
    normalizer: { type: 'BertNormalizer', clean_text: false, handle_chinese_chars: false, strip_accents: true, lowercase: false }, decoder: { type: 'WordPiece', prefix: '##', cleanup: false } }),
  'Unigram': file({ model: unigram(), pre_tokenizer: metaspace(), decoder: metaspace() }),
  'Unigram with byte fallback': file({ model: unigram({ byte_fallback: true, vocab: [...unigram().vocab, ...byteTokens().map((t) => [t, -12])] }), pre_tokenizer: metaspace({ prepend_scheme: 'first' }), decoder: sequence('decoders', [{ type: 'ByteFallback' }, metaspace({ prepend_scheme: 'first' })]) }),
  'Unigram of whole texts': file({ model: unigram(), normalizer: sequence('normalizers', [{ type: 'NFKC' }, { type: 'Replace', pattern: { Regex: ' {2,}' }, content: ' ' }]), pre_tokenizer: metaspace({ split: false, prepend_scheme: 'never' }), decoder: metaspace({ prepend_scheme: 'never' }) }),
  'Unigram behind Precompiled': file({ model: unigram(), normalizer: sequence('normalizers', [precompiled(compatible()), { type: 'Replace', pattern: { Regex: ' {2,}' }, content: ' ' }]), pre_tokenizer: metaspace(), decoder: metaspace() }),
  'Metaspace, first': file({ model: underBpe(), pre_tokenizer: metaspace({ prepend_scheme: 'first' }), decoder: metaspace({ prepend_scheme: 'first' }) }),
  'Metaspace, never': file({ model: underBpe(), pre_tokenizer: metaspace({ prepend_scheme: 'never' }), decoder: metaspace({ prepend_scheme: 'never' }) }),
  'Metaspace, unsplit': file({ model: underBpe({ byte_fallback: true }), pre_tokenizer: metaspace({ split: false }), decoder: metaspace() }),
  'Digits one by one': file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'Digits', individual_digits: true }), decoder: byteLevel() }),
  'Digits together': file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'Digits', individual_digits: false }), decoder: byteLevel() }),
  'CharDelimiterSplit': file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'CharDelimiterSplit', delimiter: 'e' }), decoder: byteLevel() }),
  'Whitespace': file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'Whitespace' }), decoder: byteLevel() }),
  'FixedLength': file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'FixedLength', length: 5 }), decoder: byteLevel() }),
  'FixedLength of one': file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'FixedLength', length: 1 }), decoder: byteLevel() }),
  'FixedLength of words': file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'WhitespaceSplit' }, { type: 'FixedLength', length: 3 }), decoder: byteLevel() }),
  'WordLevel': file({ model: wordLevel(TEXTS.flatMap((text) => text.match(/\w+|[^\w\s]+/gu))), pre_tokenizer: { type: 'Whitespace' } }),
  'WordLevel in small letters': file({ model: wordLevel(TEXTS.flatMap((text) => text.toLowerCase().split(/\s+/u))), normalizer: { type: 'Lowercase' }, pre_tokenizer: { type: 'WhitespaceSplit' } }),
  'WordLevel of characters': file({ model: wordLevel(TEXTS.flatMap(units)), pre_tokenizer: { type: 'FixedLength', length: 1 }, decoder: { type: 'Fuse' } }),
  'CTC': file({ model: wordLevel(['<pad>', '|', '.', '?', "n't", "'s", ...TEXTS.flatMap(units)]), pre_tokenizer: { type: 'FixedLength', length: 1 }, decoder: { type: 'CTC', pad_token: '<pad>', word_delimiter_token: '|', cleanup: true } }),
  'CTC as it is': file({ model: wordLevel(['<pad>', '|', ...TEXTS.flatMap(units)]), pre_tokenizer: { type: 'FixedLength', length: 1 }, decoder: { type: 'CTC', pad_token: '<pad>', word_delimiter_token: '|', cleanup: false } }),
  'normalized added tokens': file({ model: byteBpe(), normalizer: sequence('normalizers', [{ type: 'NFKC' }, { type: 'Lowercase' }]), pre_tokenizer: byteLevel(), decoder: byteLevel(),
    added_tokens: [...SPECIALS, token('Hello', null, { normalized: true, special: false }), token('<TOOL>', null, { normalized: true }), token('<Raw>', null), token('ﬁ', null, { normalized: true })] }),
  'added tokens that eat blanks': file({ model: byteBpe(), pre_tokenizer: byteLevel(), decoder: byteLevel(),
    added_tokens: [...SPECIALS, token('<l>', null, { lstrip: true }), token('<r>', null, { rstrip: true }), token('<lr>', null, { lstrip: true, rstrip: true }), token('<w>', null, { single_word: true }), token('word', null, { single_word: true, normalized: true, special: false }), token('mask', null, { lstrip: true, normalized: true })] }),
  'added tokens within added tokens': file({ model: byteBpe(), pre_tokenizer: byteLevel(), decoder: byteLevel(),
    added_tokens: [...SPECIALS, token('ab', null), token('abc', null), token('bcd', null, { special: false }), token('<|a|>', null), token('<|a|><|b|>', null), token('  ', null, { special: false }), token('\n\n', null, { normalized: true, special: false })] }),
  'TemplateProcessing': file({ model: byteBpe(), pre_tokenizer: byteLevel(), decoder: byteLevel(), post_processor: { type: 'TemplateProcessing',
    single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }, { SpecialToken: { id: 'both', type_id: 0 } }], pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
    special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] }, both: { id: 'both', ids: [2, 1], tokens: ['</s>', '<s>'] } } } }),
  'RobertaProcessing': file({ model: byteBpe(), pre_tokenizer: byteLevel({ add_prefix_space: true }), decoder: byteLevel(), post_processor: { type: 'RobertaProcessing', sep: ['</s>', 2], cls: ['<s>', 1], trim_offsets: true, add_prefix_space: true } }),
};
for (const [name, normalizer] of Object.entries({
  NFC: { type: 'NFC' }, NFD: { type: 'NFD' }, NFKC: { type: 'NFKC' }, NFKD: { type: 'NFKD' }, Nmt: { type: 'Nmt' }, Lowercase: { type: 'Lowercase' }, StripAccents: sequence('normalizers', [{ type: 'NFD' }, { type: 'StripAccents' }]),
  Strip: { type: 'Strip', strip_left: true, strip_right: true }, 'Strip left': { type: 'Strip', strip_left: true, strip_right: false }, Prepend: { type: 'Prepend', prepend: '>> ' },
  'Replace of a pattern': { type: 'Replace', pattern: { Regex: '\\s+' }, content: ' ' }, 'Replace of a string': { type: 'Replace', pattern: { String: 'e' }, content: '\u20ac' },
  'Precompiled as NFKC': precompiled(compatible()),
  'Precompiled with little': precompiled({ ﬁ: 'fi', '①': '1', a: '' }),
  'Precompiled for graphemes': precompiled({ 'e\u0301': 'é', 'A\u030a': 'Å', '\r\n': '\n', '\t': ' ', '👍🏽': '+', '🇩🇪': 'DE', '\u200b': '' }),
  'Precompiled with prefixes': precompiled({ a: 'X', 'a\u0301': 'Z', ab: 'Y', e: '', 'é': 'e\u0301e', '\u0301': '\u0300', ' ': '▁' }),
})) files[`normalizer ${name}`] = file({ model: byteBpe(), normalizer, pre_tokenizer: byteLevel(), decoder: byteLevel() });
files['normalizer ByteLevel'] = file({ model: byteBpe(), normalizer: { type: 'ByteLevel' }, decoder: byteLevel() });
for (const behavior of BEHAVIORS) {
  files[`Split by pattern, ${behavior}`] = file({ model: byteBpe(), pre_tokenizer: beforeBytes(split({ Regex: '\\p{N}{1,3}|[aeiou]+|\\s+(?!\\S)' }, behavior)), decoder: byteLevel() });
  files[`Split by pattern inverted, ${behavior}`] = file({ model: byteBpe(), pre_tokenizer: beforeBytes(split({ Regex: '\\p{L}+|\\p{N}+' }, behavior, true)), decoder: byteLevel() });
  files[`Split by string, ${behavior}`] = file({ model: byteBpe(), pre_tokenizer: beforeBytes(split({ String: ' ' }, behavior)), decoder: byteLevel() });
  files[`Punctuation, ${behavior}`] = file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'Punctuation', behavior }), decoder: byteLevel() });
}

describe('features', () => {
  let root;
  before(() => { root = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-golden-')); });
  after(() => fs.rmSync(root, { recursive: true, force: true }));

  function folderWith(name, json) {
    const folder = path.join(root, name.replace(/\W+/gu, '_'));
    fs.mkdirSync(folder);
    fs.writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(json));
    return folder;
  }

  for (const [name, json] of Object.entries(files)) {
    test(name, async () => {
      const library = Tokenizer.fromString(JSON.stringify(json));
      const added = json.added_tokens.map(({ content }) => content);
      const texts = [...TEXTS, ...ODDITIES, ...lookAlikes(added),
        ...randomTexts(new Random(99), RANDOM_TEXTS, { added, texts: TEXTS, decoded: [] })];
      await agree(name, folderWith(name, json), library, await casesFor(library, texts));
    });
  }

  test('the tables made for Precompiled replace what they are to', async () => {
    const [table, plain] = ['normalizer Precompiled as NFKC', 'ByteLevel with its own pattern'].map((name) => Tokenizer.fromString(JSON.stringify(files[name])));
    const replaced = Object.entries(compatible());
    assert.ok(replaced.length > 1_000);
    assert.deepEqual(await encodeAll(table, replaced.map(([text]) => text), false), await encodeAll(plain, replaced.map(([, other]) => other), false));
  });

  const unknown = {
    WordMagic: file({ model: { ...byteBpe(), type: 'WordMagic' } }),
    FancySplit: file({ model: byteBpe(), pre_tokenizer: { type: 'FancySplit' } }),
    UnicodeScripts: file({ model: byteBpe(), pre_tokenizer: beforeBytes({ type: 'UnicodeScripts' }) }),
    Shout: file({ model: byteBpe(), normalizer: sequence('normalizers', [{ type: 'NFC' }, { type: 'Shout' }]) }),
    Encircle: file({ model: byteBpe(), post_processor: { type: 'Encircle' } }),
    Unspell: file({ model: byteBpe(), decoder: { type: 'Unspell' } }),
    dropout: file({ model: byteBpe({ dropout: 0.1 }) }),
  };
  for (const [name, json] of Object.entries(unknown)) {
    test(`a file that asks for ${name} is refused by name`, async () => {
      await assert.rejects(askTokenizer(folderWith(name, json), []), (error) => error.message.includes('ended with 3') && error.message.includes(name));
    });
  }
});
