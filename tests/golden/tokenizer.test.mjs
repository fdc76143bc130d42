// SPDX-License-Identifier: Apache-2.0
// Real models' tokenizers, to the token as Hugging Face's own library has them.
import assert from 'node:assert/strict';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { agree, cachedCases, casesFor, decodeAll, decodeCases, encodeAll, Tokenizer } from './support/compare.mjs';
import { LANGUAGES, longTexts, lookAlikes, NOT_UTF8, ODDITIES, TEXTS } from './support/corpus.mjs';
import { configOf, contentOf, folderOf, tokenizerOf } from './support/models.mjs';
import { askTokenizer } from './support/program.mjs';
import { everyCodePoint, Random, randomIds, randomTexts } from './support/random.mjs';

const RANDOM_TEXTS = 20_000;
const RANDOM_ID_LISTS = 2_000;
const ALL = ['llama2', 'llama3', 'llama3_1', 'llama3_2', 'qwen2_5', 'qwen3', 'deepseek_v3', 'gemma2', 'gemma3', 'mistral_nemo', 'gpt4o'];
const models = process.env.GOLDEN_MODEL ? [process.env.GOLDEN_MODEL] : ALL;

// What transformers does beyond tokenizer.json, written down by hand: its Llama class puts the beginning of
// text in front where tokenizer_config.json says add_bos_token, and DeepSeek's file leaves it to that.
const BEYOND_THE_FILE = {
  deepseek_v3: (config, library) => {
    assert.equal(config.add_bos_token, true);
    return (ids) => [library.tokenToId(contentOf(config.bos_token)), ...ids];
  },
};

for (const model of models) {
  describe(model, () => {
    const folder = folderOf(model);
    let library, file, special, added;

    before(() => {
      library = Tokenizer.fromFile(path.join(folder, 'tokenizer.json'));
      file = tokenizerOf(model);
      special = BEYOND_THE_FILE[model]?.(configOf(model), library);
      added = file.added_tokens.map((token) => token.content);
    });

    test('languages, code, oddities and look-alikes of special tokens', async () => {
      const texts = [...TEXTS, TEXTS.join('\n\n'), ...ODDITIES, ...ODDITIES.map((text) => `a${text}b`), ...lookAlikes(added), ...longTexts(new Random(1))];
      for (const text of Object.values(LANGUAGES)) texts.push(text.normalize('NFD'), text.normalize('NFC'), text.toUpperCase());
      await agree(model, folder, library, await casesFor(library, texts, special));
    });

    test(`${RANDOM_TEXTS} random texts`, async () => {
      const random = new Random(2024);
      const decoded = await decodeAll(library, randomIds(random, 500, library.getVocabSize()), false);
      const texts = [...randomTexts(random, RANDOM_TEXTS, { added, texts: TEXTS, decoded })];
      await agree(model, folder, library, await casesFor(library, texts, special));
    });

    test('every code point', async () => {
      const texts = [...everyCodePoint()];
      const expected = await encodeAll(library, texts, false);
      await agree(model, folder, library, texts.map((subject, i) => ({ kind: 'encode', subject, expected: expected[i] })));
    });

    test('random ids, also such as no text gives, are decoded alike', async () => {
      const lists = randomIds(new Random(7), RANDOM_ID_LISTS, library.getVocabSize() + 50);
      await agree(model, folder, library, await decodeCases(library, lists));
    });

    test('what is decoded is what was encoded', async (context) => {
      if (file.decoder.type !== 'ByteLevel') {
        context.diagnostic('this model does not promise that');
        return;
      }
      const composes = file.normalizer?.type === 'NFC';
      const texts = [...TEXTS, ...ODDITIES, ...lookAlikes(added),
        ...randomTexts(new Random(11), 3_000, { added, texts: TEXTS, decoded: [] })];
      const ids = await askTokenizer(folder, texts.map((text) => ['encode', text]));
      await agree(model, folder, library, ids.map((subject, i) => ({ kind: 'decode', subject, expected: composes ? texts[i].normalize('NFC') : texts[i] })));
    });

    test('a conversation that grows has the same tokens with a cache', async () => {
      await agree(model, folder, library, await cachedCases(library, new Random(5), added.slice(0, 12)));
    });

    test('bytes that are not UTF-8 are refused, and what follows is served', async () => {
      const after = await encodeAll(library, ['good'], false);
      await agree(model, folder, library, NOT_UTF8.flatMap((subject) => [
        { kind: 'encode', subject, expected: (answer) => /UTF-8/.test(answer.refused) },
        { kind: 'encode_cached', subject, expected: (answer) => /UTF-8/.test(answer.refused) },
        { kind: 'encode', subject: 'good', expected: after[0] },
      ]));
    });
  });
}
