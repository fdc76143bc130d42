// SPDX-License-Identifier: Apache-2.0
// Recorded answers of a real engine (tests/fixtures/ENGINE-RELEASE/*.json): lists of cases, each a request and what came back.
//   node engine_record.mjs HOST:PORT DIRECTORY [FILE…]   asks a running server each case again and writes its answers over the old ones
// A case with `pair` is asked of a prefill and a decode server at once (HOST:PORT,HOST:PORT) and has an answer of each.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { eventsOf, request } from './http.mjs';

/** The cases of a directory, with the file that holds each. */
export async function readCases(directory) {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.json')).sort();
  const lists = files.map(async (file) => {
    const cases = JSON.parse(await readFile(join(directory, file), 'utf8'));
    return cases.map((one) => ({ file, ...one }));
  });
  return (await Promise.all(lists)).flat();
}

// What stands for a text that is longer than any context of the recorded servers.
const MANY = '@many words@';
const manyWords = 'a b '.repeat(2100).trim();

/** What a case's request gets from a server: {status, headers, answer | events | metrics | text}. */
export async function ask(address, { method = 'POST', path, headers, body, raw, signal }) {
  const sent = method === 'GET' ? undefined : raw ?? JSON.stringify(body).replace(MANY, manyWords);
  const { status, headers: given, text } = await request(address, { method, path, headers, body: sent, signal });
  const kept = Object.entries(given).filter(([name]) => !['content-length', 'transfer-encoding', 'connection', 'keep-alive'].includes(name));
  return { status, headers: Object.fromEntries(kept.sort()), ...contentOf(given['content-type'] ?? '', path, text) };
}

function contentOf(type, path, text) {
  if (path === '/metrics') return { metrics: metricsOf(text) };
  if (type.startsWith('text/event-stream')) {
    return { events: eventsOf(text).map((data) => (data === '[DONE]' ? data : JSON.parse(data))) };
  }
  return type.startsWith('application/json') ? { answer: JSON.parse(text) } : { text };
}

/** The engine's own metric families: name to {type, labels}, labels of all its series together. */
export function metricsOf(text) {
  const families = {};
  let family;
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type) family = families[type[1]] = { type: type[2], labels: [] };
    const series = /^[^#\s{]+(?:\{(.*)\})? \S+$/.exec(line);
    if (!series || !family) continue;
    const names = [...(series[1] ?? '').matchAll(/([a-zA-Z_]\w*)="/g)].map((match) => match[1]);
    family.labels = [...new Set([...family.labels, ...names])].sort();
  }
  const own = Object.entries(families).filter(([name]) => name.includes(':') && !name.endsWith('_created'));
  return Object.fromEntries(own);
}

const NAMES = new Set(['id', 'remote_engine_id', 'remote_request_id']);
const PLACES = new Set(['root', 'model_path', 'tokenizer_path']);
const FIGURES = /^(created|remote_blocks_expiry_time|timestamp|.*_(time|ts|latency|throughput))$/;

/** Takes out what differs from one run to the next: times, places on a machine, and the random part of names. */
export function normalise(value, key = '') {
  if (Array.isArray(value)) return value.map((one) => normalise(one));
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, normalise(one, name)]));
  }
  if (typeof value === 'number' && FIGURES.test(key)) return 1;
  if (key === 'date' || PLACES.has(key)) return 'X';
  if (typeof value !== 'string') return value;
  if (key === 'timestamp') return 'X';
  if (key === 'message') return value.replace(/File "[^"]*", line \d+/g, 'File "X", line N');
  if (key === 'system_fingerprint') return value.replace(/-[0-9a-f]{8}$/, '-X');
  return NAMES.has(key) ? value.replace(/[0-9a-f]{8}-?[0-9a-f-]*$/, 'X') : value;
}

/** The first and the last events: those between them are alike. */
const someOf = (events) => (events.length > 8 ? [...events.slice(0, 4), ...events.slice(-4)] : events);

/** The members of a long answer that a test asks for. */
const only = (answer, names) => Object.fromEntries(Object.entries(answer).filter(([name]) => names.includes(name)));

const TIMEOUT_MS = 60_000;

/** What is kept of an answer. */
async function recorded(address, { sent, ...one }) {
  const asked = { ...one, headers: sent, signal: AbortSignal.timeout(TIMEOUT_MS) };
  const { headers, ...rest } = normalise(await ask(address, asked));
  if (rest.events) rest.events = someOf(rest.events);
  if (one.keep) rest.answer = only(rest.answer, one.keep);
  return { ...rest, headers };
}

async function answersTo(addresses, one) {
  if (!one.pair) return recorded(addresses[0], one);
  const [prefill, decode] = await Promise.all(addresses.map((address) => recorded(address, one)));
  return { prefill, decode };
}

async function record(addresses, directory, wanted) {
  const all = await readCases(directory);
  const cases = wanted.length ? all.filter(({ file }) => wanted.includes(file)) : all;
  const files = new Map(cases.map(({ file }) => [file, []]));
  for (const { file, name, method, path, sent, body, raw, instead, keep, pair } of cases) {
    const asked = { name, method, path, body, raw, sent, instead, keep, pair };
    try {
      files.get(file).push({ ...asked, ...(await answersTo(addresses, asked)) });
    } catch (error) {
      console.error(`left out: ${file}: ${name}: ${error.message}`);
    }
  }
  for (const [file, list] of files) {
    const lines = list.map((one) => JSON.stringify(one));
    await writeFile(join(directory, file), `[\n${lines.join(',\n')}\n]\n`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await record(process.argv[2].split(','), process.argv[3], process.argv.slice(4));
