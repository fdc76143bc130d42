// SPDX-License-Identifier: Apache-2.0
// Baton's side: the programs encode_lines and render_lines, given many requests in one run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export async function run(program, args, input, env = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env } });
  const out = [], err = [];
  child.stdout.on('data', (data) => out.push(data));
  child.stderr.on('data', (data) => err.push(data));
  child.stdin.on('error', () => {});  // it ended early, which its exit code tells
  child.stdin.end(input);
  const [code, signal] = await once(child, 'close');
  return { code: code ?? signal, out: Buffer.concat(out), err: Buffer.concat(err).toString() };
}

export const bytesOf = (ids) => {
  const bytes = Buffer.alloc(ids.length * 4);
  ids.forEach((id, i) => bytes.writeUInt32LE(id, i * 4));
  return bytes;
};

const PAYLOAD = {
  encode: (text) => Buffer.from(text),
  encode_special: (text) => Buffer.from(text),
  encode_cached: (text) => Buffer.from(text),
  decode: bytesOf,
  decode_skipping: bytesOf,
};
const KIND = { encode: 'e', encode_special: 's', encode_cached: 'c', decode: 'd', decode_skipping: 'k' };

// Asks Baton's tokenizer in `folder`; `requests` are [kind, text or ids]. The answers are, in order, arrays of
// ids, texts, or { refused: message }. Throws where the folder cannot be loaded.
export async function askTokenizer(folder, requests) {
  const parts = [];
  for (const [kind, subject] of requests) {
    const payload = PAYLOAD[kind](subject);
    const head = Buffer.alloc(5);
    head.write(KIND[kind]);
    head.writeUInt32LE(payload.length, 1);
    parts.push(head, payload);
  }
  const { code, out, err } = await run(process.env.ENCODE_LINES, [folder], Buffer.concat(parts));
  if (code !== 0) throw new Error(`encode_lines ended with ${code}: ${err}`);
  const answers = [];
  const text = new TextDecoder('utf-8', { ignoreBOM: true });
  for (let at = 0; at < out.length;) {
    const good = out[at] === 0;
    const length = out.readUInt32LE(at + 1);
    const payload = out.subarray(at + 5, at + 5 + length);
    at += 5 + length;
    if (!good) {
      answers.push({ refused: payload.toString() });
    } else if (requests[answers.length][0].startsWith('decode')) {
      answers.push(text.decode(payload));
    } else {
      answers.push(Array.from({ length: length / 4 }, (_, i) => payload.readUInt32LE(i * 4)));
    }
  }
  if (answers.length !== requests.length) throw new Error(`${answers.length} answers to ${requests.length} requests: ${err}`);
  return answers;
}
