// SPDX-License-Identifier: Apache-2.0
// Random texts drawn from a seed, so that every run tries the same ones.

// A small generator of our own (xorshift32): Math.random cannot be seeded.
export class Random {
  constructor(seed) {
    this.state = (seed * 2654435761 + 1) >>> 0 || 1;
  }

  next() {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (this.state = x >>> 0);
  }

  below(limit) {
    return Math.floor((this.next() / 2 ** 32) * limit);
  }

  between(first, last) {
    return first + this.below(last - first + 1);
  }

  of(list) {
    return list[this.below(list.length)];
  }

  many(least, most, make) {
    return Array.from({ length: this.between(least, most) }, make);
  }
}

const SURROGATES = [0xd800, 0xdfff];
const BEYOND = 0x110000;

function codePoint(random, first, last) {
  for (;;) {
    const code = random.between(first, last);
    if (code < SURROGATES[0] || code > SURROGATES[1]) return String.fromCodePoint(code);
  }
}

// Where most of what is assigned lies: blocks of 256 code points.
const PAGES = [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0b, 0x0e, 0x0f, 0x10, 0x11, 0x13,
  0x16, 0x17, 0x18, 0x1a, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2c,
  0x2d, 0x2e, 0x30, 0x31, 0x32, 0x33, 0x4e, 0x5f, 0x9f, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xd7,
  0xe0, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0x100, 0x101, 0x102, 0x103, 0x104, 0x105, 0x108,
  0x10a, 0x10d, 0x10e, 0x10f, 0x110, 0x111, 0x114, 0x116, 0x118, 0x11c, 0x11f, 0x120, 0x16f, 0x1bc,
  0x1cf, 0x1d1, 0x1d4, 0x1d7, 0x1da, 0x1e0, 0x1e1, 0x1e2, 0x1e8, 0x1e9, 0x1ec, 0x1ee, 0x1f0, 0x1f1,
  0x1f3, 0x1f6, 0x1f9, 0x1fa, 0x1fb, 0x200, 0x2a6, 0x2f8, 0x313, 0xe00, 0xe01, 0x10ff];

const BLANKS = [' ', ' ', ' ', '  ', '\n', '\n\n', '\r\n', '\r', '\t', '\u000b', '\f', '\u0085', '\u00a0', '\u1680',
  '\u2000', '\u2003', '\u2007', '\u200b', '\u2028', '\u2029', '\u202f', '\u205f', '\u2060', '\u3000', '\ufeff', '\u180e',
  '\u001c', '\u001f', '\u2581'];
const QUIRKS = ["'s", "'S", "'re", "'RE", "'Ll", "'d", "'T", '’s', "'\u017f", "'K", "'\u212a", "''s", "'ſt", 'İ', 'ı', 'ß', 'ﬁ', 'Ω',
  '²', '½', '٣', '۴', '௧', 'Ⅷ', '一', '〇', '᠐', '𝟘', '①', '1', '12', '123', '1234', '0'.repeat(40), '3.14', '1,000', '-', '--', '...',
  '!', '?!', '(', '"', '/', '//', '\\', '_', '__', '#', '@', '$', '€', '§', '…', '—', '„', '«', '。', '、', '！',
  'e\u0301', 'é', 'A\u030a', 'Å', 'Å', 'q\u0307\u0323', '\u1100\u1161\u11a8', '각', 'ཱི', '\u0344', '\u0958', '\u2126', '豈', '\u{2f800}',
  '👍🏽', '👩‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪', '🇫🇷🇯🇵', '☺️', '#️⃣', '\u200d', '\ufe0f', '\u0000', '\u0001', '\u007f', '\u0080', '\ufffd', '\uffff',
  '\u{10ffff}', 'שָׁלוֹם', 'مُحَمَّد', 'नमस्ते', 'ไทย', 'x\u0300\u0316\u0321'];

const WORDS = ['the', 'The', 'THE', 'tokenizer', 'HTTPServer', 'camelCase', 'snake_case', "don't", "we'll", "I'M", 'naïve', 'Straße',
  'Привет', 'мир', 'κόσμε', '你好', '世界', 'こんにちは', 'カタカナ', '안녕하세요', 'مرحبا', 'שלום', 'สวัสดี', 'Việt', 'İstanbul', '<', '>', '|',
  '<|', '|>', '[', ']', '</', '<s', 's>', '｜', '▁'];

function mutated(random, text) {
  const units = Array.from(text);
  const from = random.below(units.length);
  const cut = units.slice(from, from + random.between(1, 80));
  for (let i = random.below(4); i > 0; --i) {
    const at = random.below(cut.length);
    switch (random.below(4)) {
      case 0: cut.splice(at, 1); break;
      case 1: cut.splice(at, 0, random.of(QUIRKS)); break;
      case 2: cut.splice(at, 0, random.of(BLANKS)); break;
      default: cut[at] = cut[at]?.toUpperCase() ?? '';
    }
  }
  return cut.join('');
}

// `added`: the model's added tokens; `texts`: the corpus; `decoded`: texts of random ids of the model.
export function* randomTexts(random, count, { added, texts, decoded }) {
  const nearly = (token) => {
    const units = Array.from(token);
    units.splice(random.below(units.length), random.below(2), ...random.many(0, 1, () => random.of(WORDS)));
    return units.join('');
  };
  const parts = [
    () => codePoint(random, 0, BEYOND - 1),
    () => { const page = random.of(PAGES) << 8; return random.many(1, 6, () => codePoint(random, page, page + 255)).join(''); },
    () => codePoint(random, 0x20, 0x7e),
    () => random.many(1, 5, () => random.of(BLANKS)).join(''),
    () => random.of(BLANKS).repeat(random.between(1, 20)),
    () => random.of(QUIRKS),
    () => random.of(WORDS),
    () => ' ' + random.of(WORDS),
    () => (added.length ? random.of(added) : ''),
    () => (added.length ? nearly(random.of(added)) : ''),
    () => mutated(random, random.of(texts)),
    () => String(random.next()),
    () => String.fromCharCode(...random.many(1, 12, () => random.below(256))),
    () => (decoded.length ? random.of(decoded) : ''),
  ];
  for (let i = 0; i < count; ++i) {
    // Half of them are of one or two kinds only: a long run of the same is a case of its own.
    const kinds = random.below(2) ? parts : random.many(1, 2, () => random.of(parts));
    yield random.many(1, 8, () => random.of(kinds)()).join('');
  }
}

export function randomIds(random, count, size) {
  return Array.from({ length: count }, () => random.many(1, 12, () => random.below(size)));
}

// Large ranges of one kind, of which some suffice: ideographs, Hangul, private use, old scripts, and the planes behind.
const ALIKE = [[0x3500, 0x9f00], [0xac80, 0xd700], [0xe010, 0xf8f0], [0x12010, 0x14600], [0x17010, 0x18c00], [0x20000, BEYOND]];

// The code points, each between letters, digits, blanks and its own kind: what class a pattern takes it for shows
// in how the text is cut.
export function* everyCodePoint() {
  const codes = [];
  const step = (code) => (ALIKE.some(([first, end]) => code >= first && code < end) ? (code < 0x20000 ? 13 : 241) : 1);
  for (let code = 0; code < BEYOND; code += step(code)) {
    if (code < SURROGATES[0] || code > SURROGATES[1]) codes.push(String.fromCodePoint(code));
  }
  for (let i = 0; i < codes.length; i += 32) {
    yield codes.slice(i, i + 32).map((c) => `a${c}b 1${c} ${c}${c}!${c}\n`).join('');
  }
}
