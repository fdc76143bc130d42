// SPDX-License-Identifier: Apache-2.0
// SentencePiece's table of replacements as Precompiled normalizers have it: base64 of the size of a trie in
// bytes, the trie (a Darts double array), and replacements each ended by a zero byte.

// `replacements`: an object of what is replaced by what.
export function charsmap(replacements) {
  const root = { children: new Map() };
  const texts = [];
  let written = 0;
  for (const [key, text] of Object.entries(replacements)) {
    let node = root;
    for (const byte of Buffer.from(key)) {
      if (!node.children.has(byte)) node.children.set(byte, { children: new Map() });
      node = node.children.get(byte);
    }
    node.value = written;
    texts.push(Buffer.from(`${text}\0`));
    written += texts.at(-1).length;
  }

  const units = [0];
  let free = 256;  // before it little is left
  const taken = (place) => units[place] !== undefined;
  const place = (node, at, label) => {
    // A child stands at `base ^ its label`, a value at `base` itself.
    const labels = [...node.children.keys(), ...(node.value === undefined ? [] : [0])];
    let base = free;
    while (labels.some((one) => taken(base ^ one))) ++base;
    if (labels.length > 1) free = Math.max(free, base - 1024);
    units[at] = (((base ^ at) << 10) | (node.value === undefined ? 0 : 1 << 8) | label) >>> 0;
    if (node.value !== undefined) units[base] = (0x80000000 | node.value) >>> 0;
    for (const byte of node.children.keys()) units[base ^ byte] = byte;
    for (const [byte, child] of node.children) place(child, base ^ byte, byte);
  };
  place(root, 0, 0);

  const size = (units.length + 255) & ~255;  // what is looked up lies within
  const trie = Buffer.alloc(4 + size * 4);
  trie.writeUInt32LE(size * 4);
  units.forEach((unit, i) => trie.writeUInt32LE(unit, 4 + i * 4));
  return Buffer.concat([trie, ...texts]).toString('base64');
}

// What NFKC makes of each character of the first plane, as the tables of real models do.
export function compatible() {
  const replacements = {};
  for (let code = 1; code < 0xffff; ++code) {
    if (code >= 0xd800 && code <= 0xf8ff) continue;
    const text = String.fromCodePoint(code);
    const other = text.normalize('NFKC');
    if (other !== text) replacements[text] = other;
  }
  return replacements;
}
