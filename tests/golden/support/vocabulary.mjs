// SPDX-License-Identifier: Apache-2.0
// Small models for features that no packaged model uses, learnt from the corpus on the spot.
import { TEXTS } from './corpus.mjs';
import { Random } from './random.mjs';

// How ByteLevel writes bytes: those that print as themselves, the others from U+0100 on.
function byteAlphabet() {
  const prints = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const letters = [];
  let next = 256;
  for (let byte = 0; byte < 256; ++byte) letters.push(String.fromCodePoint(prints(byte) ? byte : next++));
  return letters;
}
export const BYTES = byteAlphabet();
export const inBytes = (text) => Array.from(Buffer.from(text), (byte) => BYTES[byte]).join('');
export const byteTokens = () => Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);

const words = (texts) => texts.flatMap((text) => text.split(/(?=\s)/u)).map((word) => word.replace(/\n/gu, ' '));

// Merges the most frequent pair again and again. `spelled` gives a word's first symbols.
export function learnMerges(count, spelled, joined = (a, b) => a + b, texts = TEXTS) {
  const spellings = words(texts).map(spelled).filter((symbols) => symbols.length);
  const alphabet = [...new Set(spellings.flat())];
  const merges = [], made = new Set(alphabet);
  for (let round = 0; round < count; ++round) {
    const seen = new Map();
    for (const symbols of spellings) {
      for (let i = 0; i + 1 < symbols.length; ++i) {
        const key = `${symbols[i]}\u0000${symbols[i + 1]}`;
        seen.set(key, (seen.get(key) ?? 0) + 1);
      }
    }
    let best = null, most = 1;
    for (const [key, times] of seen) if (times > most) [best, most] = [key, times];
    if (!best) break;
    const [a, b] = best.split('\u0000');
    merges.push([a, b]);
    made.add(joined(a, b));
    for (const symbols of spellings) {
      for (let i = 0; i + 1 < symbols.length; ++i) {
        if (symbols[i] === a && symbols[i + 1] === b) symbols.splice(i, 2, joined(a, b));
      }
    }
  }
  return { merges, tokens: [...made] };
}

export const numbered = (tokens) => Object.fromEntries([...new Set(tokens)].map((token, id) => [token, id]));

// Substrings of the corpus' words with made-up scores, as Unigram has them.
export function scoredPieces(count, changed = (text) => text, seed = 3) {
  const random = new Random(seed);
  const pieces = new Map();
  const all = words(TEXTS).map(changed).filter((word) => word);
  for (const letter of new Set(all.flatMap((word) => Array.from(word)))) pieces.set(letter, -9 - random.below(400) / 100);
  while (pieces.size < count) {
    const units = Array.from(random.of(all));
    const from = random.below(units.length);
    const piece = units.slice(from, from + random.between(2, 6)).join('');
    if (piece && !pieces.has(piece)) pieces.set(piece, -4 - random.below(600) / 100);
  }
  return [...pieces];
}
