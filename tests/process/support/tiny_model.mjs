// SPDX-License-Identifier: Apache-2.0
// The files of a model whose tokens can be told by looking: each byte is the token of its value, "hi" is 256, and the
// special tokens follow. Text begins with <s>; a chat is <s><|role|>content<|end|>…<|assistant|>.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const SPECIALS = ['<|user|>', '<|assistant|>', '<|end|>', '<s>', '<|system|>'];
export const ID = Object.fromEntries(SPECIALS.map((content, i) => [content, 257 + i]));

export const TEMPLATE =
  '{{ bos_token }}{% for message in messages %}' +
  "{% if message.role == 'broken' %}{{ raise_exception('no such role here') }}{% endif %}" +
  '<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}' +
  '{% if add_generation_prompt %}<|assistant|>{% endif %}';

/** How ByteLevel writes each byte: itself where it is printable Latin-1, else the next code point from U+0100 on. */
function byteAlphabet() {
  const printable = (byte) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}

export const bytesOf = (text) => [...Buffer.from(text, 'utf8')];

export function tokenizerJson() {
  const vocab = Object.fromEntries([...byteAlphabet().map((char, byte) => [char, byte]), ['hi', 256]]);
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  const bos = { SpecialToken: { id: '<s>', type_id: 0 } };
  const text = { Sequence: { id: 'A', type_id: 0 } };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIALS.map((content) => ({ id: ID[content], content, ...flags })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: {
      type: 'TemplateProcessing',
      single: [bos, text],
      pair: [bos, text, text],
      special_tokens: { '<s>': { id: '<s>', ids: [ID['<s>']], tokens: ['<s>'] } },
    },
    decoder: byteLevel,
    model: { type: 'BPE', vocab, merges: ['h i'], dropout: null, unk_token: null, fuse_unk: false, byte_fallback: false },
  };
}

/** Writes the model's folder; returns its path. */
export async function writeTinyModel(scenario, { name = 'tiny-model', tokenizer = tokenizerJson(), template = TEMPLATE } = {}) {
  const folder = scenario.file(name);
  await mkdir(folder);
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  await writeFile(
    join(folder, 'tokenizer_config.json'),
    JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast', bos_token: '<s>', eos_token: '<|end|>', chat_template: template }),
  );
  return folder;
}
