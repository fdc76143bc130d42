// SPDX-License-Identifier: Apache-2.0
// Recorded KV events of a real engine (tests/fixtures/ENGINE-RELEASE/kv_events.jsonl): a line for each request, with the batches it led to.
//   node kv_recorded.mjs HOST:PORT FEED FILE   asks a running server each step again and writes its batches over the old ones
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { shapeOf } from './engine_compare.mjs';
import { Sim } from './fleet.mjs';
import { request } from './http.mjs';
import { Follower } from './kv_feed.mjs';
import { scenario } from './scenario.mjs';

const FIRST_TOKEN = 100_000;
const QUIET_MS = 2_000;

const range = ({ first, count }) => Array.from({ length: count }, (_, i) => first + i);

async function ask(address, { path, body }) {
  const sent = body.prompt ? { ...body, prompt: range(body.prompt) } : body;
  const { status, text } = await request(address, { path, body: JSON.stringify(sent) });
  assert.equal(status, 200, text);
}

const stepsOf = async (file) => (await readFile(file, 'utf8')).trim().split('\n').map((line) => JSON.parse(line));

/** Reads a feed from a batch on that a few prompts of no importance have led to. */
async function follow(s, address, feed, model) {
  const follower = Follower.start(s, [feed]);
  let first = FIRST_TOKEN;
  await follower.live(0, () => ask(address, { path: '/v1/completions', body: { model, prompt: { first: (first += 100), count: 33 }, max_tokens: 1 } }));
  return follower;
}

const batchOf = ({ frames, topic, batch }) => ({ frames, topic, rank: batch.rank, events: batch.events });

/** What a step's batches say: each kind of event, in order, with its fields; and how many blocks were stored. */
function toldBy(batches) {
  const events = batches.flatMap(({ events: list }) => list);
  const kinds = events.map(({ blocks, block_hashes: hashes, token_ids: tokens, extra_keys: keys, ...event }) => {
    const { type, medium, block_size: size, shape } = event;
    const some = { hashes: hashes?.slice(0, 1), tokens: tokens?.slice(0, 1), keys: keys?.slice(0, 1) };
    return { type, medium, size, shape, fields: shapeOf(JSON.parse(JSON.stringify({ ...event, ...some }))) };
  });
  const stored = events.filter(({ type }) => type === 'BlockStored');
  return {
    kinds: kinds.filter((kind, i) => kind.type !== kinds[i - 1]?.type),
    blocks: stored.reduce((sum, { blocks, block_hashes: hashes }) => sum + (blocks ?? hashes.length), 0),
    frames: [...new Set(batches.map(({ frames, topic, rank }) => `${frames} ${topic} ${rank}`))],
  };
}

/** Asks a simulated engine each step, and compares what it tells. `prepare(address)`: what comes between finding the feed and that. */
export function compareKvEvents(name, { file, sim: flags, prepare = () => {} }) {
  scenario(name, async (s) => {
    const sim = await Sim.telling(s, flags);
    const follower = await follow(s, sim.address, sim.feed, flags.model);
    await prepare(sim.address);
    const last = async () => (await sim.blocks())[0].next_seq - 1;
    for (const step of await stepsOf(file)) {
      const before = await last();
      await ask(sim.address, step);
      const after = await last();
      await follower.reaches(after);
      const told = follower.messages().filter(({ seq }) => seq > before && seq <= after);
      assert.deepEqual(toldBy(told.map(batchOf)), toldBy(step.batches), JSON.stringify(step.body));
    }
  });
}

/** Of lists, the first element and their length. */
function shortened({ block_hashes: hashes, token_ids: tokens, extra_keys: keys, ...event }) {
  if (!hashes) return event;
  const some = { block_hashes: hashes.slice(0, 1), ...(tokens ? { token_ids: tokens.slice(0, 1) } : {}), ...(keys ? { extra_keys: keys.slice(0, 1) } : {}) };
  return { type: event.type, ...some, ...event, blocks: hashes.length };
}

function record(address, feed, file) {
  scenario(`records ${file}`, async (s) => {
    const steps = await stepsOf(file);
    const follower = await follow(s, address, feed, 'tiny');
    const lines = [];
    for (const { path, body } of steps) {
      const before = follower.messages().length;
      await ask(address, { path, body });
      await pause(QUIET_MS); // the last batch is not marked
      const batches = follower.messages().slice(before).map(batchOf);
      for (const batch of batches) batch.events = batch.events.map(shortened);
      lines.push(JSON.stringify({ path, body, batches }));
    }
    await writeFile(file, `${lines.join('\n')}\n`);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) record(...process.argv.slice(2));
