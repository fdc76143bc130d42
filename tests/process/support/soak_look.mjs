// SPDX-License-Identifier: Apache-2.0
// What a router holds: memory, threads, descriptors, and what its metrics say is under way.
import { readFile, readdir, readlink } from 'node:fs/promises';

import { pause } from './dice.mjs';
import { residentBytes } from './process.mjs';

const MIB = 1024 * 1024;
/** The allocator's own unused memory comes and goes, and what is remembered is bounded, but not as full after a minute as it gets. */
export const GROWTH_MIB = 24;
// Idle connections end with the engines' keep-alive, and are let go of in the next seconds.
const LEAST_MS = 10_000;
const MOST_MS = 60_000;
const EVERY_MS = 100;
// Memory that is held on purpose.
const CACHES = ['baton_kv_index_bytes', 'baton_kv_worker_bytes', 'baton_token_cache_bytes'];
// All of them are 0 where nothing runs.
const UNDER_WAY = [
  'baton_worker_in_flight', 'baton_worker_prefill_tokens', 'baton_worker_decode_blocks', 'baton_queue_requests', 'baton_queue_tokens',
  'baton_cpu_waiting', 'baton_escaped_exceptions_total',
];

const inMib = (bytes) => Math.round((10 * bytes) / MIB) / 10;
const descriptorsOf = async (pid) => (await readdir(`/proc/${pid}/fd`)).length;

/** How many descriptors of each kind are open. */
async function kindsOf(pid) {
  const kinds = {};
  for (const number of await readdir(`/proc/${pid}/fd`)) {
    const target = await readlink(`/proc/${pid}/fd/${number}`).catch(() => 'closed');
    const kind = target.replace(/:?\[\d+\]$/, '');
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

/** The fewest descriptors that are open at one moment; where there were so many before, once it is no more. */
async function fewestDescriptors(pid, wanted) {
  const begun = Date.now();
  let fewest = Infinity;
  while (Date.now() < begun + (wanted === undefined ? LEAST_MS : MOST_MS) && !(fewest <= wanted)) {
    fewest = Math.min(fewest, await descriptorsOf(pid));
    await pause(EVERY_MS);
  }
  return fewest;
}

const threadsOf = async (pid) => (await readdir(`/proc/${pid}/task`)).length;

/** For a line about a router that is at work. */
export async function shown({ process: { pid } }) {
  return `rss ${inMib(await residentBytes(pid))} MiB, ${await descriptorsOf(pid)} descriptors, ${await threadsOf(pid)} threads`;
}

/** How a router and its fleet at rest are. `before`: how they were, which descriptors are given time to come back to. */
export async function lookAt(router, slots, before) {
  const { pid } = router.process;
  const descriptors = await fewestDescriptors(pid, before?.descriptors);
  const metrics = await router.metrics();
  const sum = (name) => metrics.filter((one) => one.name === name).reduce((all, { value }) => all + value, 0);
  const states = await Promise.all(slots.map(({ sim }) => sim.state()));
  return {
    rss: inMib(await residentBytes(pid)),
    descriptors,
    ...(descriptors > (before?.descriptors ?? Infinity) ? { kinds: await kindsOf(pid) } : {}),
    threads: await threadsOf(pid),
    remembered: inMib(CACHES.reduce((all, name) => all + sum(name), 0)),
    series: metrics.length,
    workers: sum('baton_workers'),
    pinned: states.reduce((all, { pinned }) => all + pinned, 0),
    ...Object.fromEntries(UNDER_WAY.map((name) => [name, sum(name)])),
  };
}

/** What is not as it was, in words. */
export function differences(before, now) {
  const all = [];
  if (now.rss > before.rss + GROWTH_MIB) all.push(`${now.rss} MiB are resident, ${before.rss} before; at most ${GROWTH_MIB} more`);
  if (now.descriptors > before.descriptors) all.push(`${now.descriptors} descriptors are open, ${before.descriptors} before: ${JSON.stringify(now.kinds)}`);
  for (const key of ['threads', 'workers']) {
    if (now[key] !== before[key]) all.push(`${key}: ${now[key]}, ${before[key]} before`);
  }
  for (const key of ['pinned', ...UNDER_WAY]) {
    if (now[key] !== 0) all.push(`${key} is ${now[key]}`);
  }
  return all;
}
