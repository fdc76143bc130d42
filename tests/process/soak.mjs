// SPDX-License-Identifier: Apache-2.0
// One router in front of a fleet of every hand-off mode, for an hour: a steady load, clients that leave, workers of every role that are
// killed, drained and removed, reloads, and lost KV events. What stays after each of these has to be what stayed after the first minute.
// `./dev test soak` runs it; it is no part of ctest.
//
// SOAK_MINUTES is its length; SOAK_RATE how many requests come in a second; SOAK_SEED repeats a plan; SOAK_LOG is where the router's log
// goes.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';

import { Dice, pause } from './support/dice.mjs';
import { Router } from './support/fleet.mjs';
import { inTime } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { HANDOFFS, Slot, rest } from './support/slot.mjs';
import { differences, lookAt, shown } from './support/soak_look.mjs';
import { Storm } from './support/soak_storm.mjs';
import { Tally, callOnce, someRequest } from './support/tally.mjs';

const MINUTES = Number(process.env.SOAK_MINUTES ?? 60);
const RATE = Number(process.env.SOAK_RATE ?? 40);
const SEED = Number(process.env.SOAK_SEED ?? Date.now() % 1_000_000);

const MINUTE_MS = 60_000;
// After the first phase memory is looked at for what the others are compared with; all else is to be as before any request.
const WARM_UP_MINUTES = Math.min(1, MINUTES / 4);
const PHASE_MINUTES = Math.min(10, (MINUTES - WARM_UP_MINUTES) / 3);
const MOST_AT_ONCE = 200;
const COUNTS = { prefill: 2, decode: 3, aggregated: 3 };
const TIMEOUTS = { connect: '1s', first_byte: '5s', idle: '5s', handoff_grace: '2s' };
// Kept connections end with the keep-alive of the engines, which is shorter than a look is long, and no worker that is well is asked
// how it is.
const KEEP_ALIVE_MS = 2_000;
// So few that the workers' caches, and what is remembered of them and of prompts, are soon as full as they get.
const BLOCKS = 2_048;
const LIMITS = { token_cache_bytes: '1MiB' };
const HEALTH = { interval: '1h' };

const modelOf = ({ name }) => name.replaceAll(' ', '-');
const FLEETS = [...HANDOFFS, { name: 'vllm aggregated', engine: 'vllm' }].map((one) => ({ ...one, model: modelOf(one) }));

async function startFleet(s, one) {
  const { engine, handoff, model } = one;
  const roles = handoff ? ['prefill', 'decode'] : ['aggregated'];
  const tools = engine === 'vllm' ? { toolCallParser: 'hermes', enableAutoToolChoice: true } : {};
  const flags = { model, blocks: BLOCKS, keepAliveMs: KEEP_ALIVE_MS, telling: true, ...tools };
  const all = roles.flatMap((role) => Array.from({ length: COUNTS[role] }, () => new Slot(s, role, one, flags)));
  return { ...one, slots: await Promise.all(all.map((slot) => slot.start())) };
}

const configOf = ({ model, handoff, slots }) => ({
  name: model,
  retries: 3,
  migration: 3,
  workers: slots.map(({ spec }) => spec),
  // One of them has its prompts looked for in the workers' caches.
  ...(handoff === 'nixl_pull' ? { tokenize: 'engine', policy: 'kv' } : {}),
});

/** Requests at their rate, whatever becomes of those before them; returns when all of them have ended. */
async function traffic(router, fleets, dice, tally, milliseconds) {
  const until = Date.now() + milliseconds;
  let due = Date.now();
  while (Date.now() < until) {
    due = Math.max(due, Date.now() - 1_000) - (Math.log(1 - dice.next()) * 1_000) / RATE;
    if (due > Date.now()) await pause(due - Date.now());
    if (tally.running.size >= MOST_AT_ONCE) await Promise.race(tally.running);
    const { engine, model } = dice.of(fleets);
    const body = someRequest(dice, engine, dice.below(1e9), { model, tools: 0.1 });
    const call = callOnce(router, body, dice, tally).finally(() => tally.running.delete(call));
    tally.running.add(call);
  }
  await Promise.all(tally.running);
}

scenario(`a soak of ${MINUTES} minutes`, async (s) => {
  const dice = new Dice(SEED);
  const fleets = await Promise.all(FLEETS.map((one) => startFleet(s, one)));
  const slots = fleets.flatMap((one) => one.slots);
  const log = { format: 'json', level: 'warning' };
  const config = { threads: 2, log, timeouts: TIMEOUTS, limits: LIMITS, health: HEALTH };
  const router = await Router.start(s, { ...config, models: fleets.map(configOf) });
  const allUp = () => Promise.all(fleets.map(({ model }) => router.allUp(model)));
  await allUp();
  const tally = Object.assign(new Tally(), { running: new Set() });
  const storm = new Storm(router, slots, dice);
  const begun = Date.now();
  const told = setInterval(async () => {
    const { requests, exact, aborts, errors, running } = tally;
    const sums = `${requests} requests, ${exact} exact, ${aborts} left, errors ${JSON.stringify(errors)}, ${running.size} running`;
    const now = await shown(router).catch((error) => error.message);
    console.log(`${Math.round((Date.now() - begun) / MINUTE_MS)} min: ${sums}; ${storm}; ${now}`);
  }, MINUTE_MS);
  s.after(() => clearInterval(told));

  const wanted = await lookAt(router, slots);
  console.log(`at first: ${JSON.stringify(wanted)}`);
  delete wanted.rss; // it is measured once the caches have something in them
  /** A phase of everything, and then how things are once all is quiet. */
  const phase = async (minutes) => {
    const length = minutes * MINUTE_MS;
    await Promise.all([traffic(router, fleets, dice, tally, length), storm.blow(length)]);
    await storm.calm();
    await inTime('every worker may have requests', allUp(), 60_000);
    await rest(router, slots);
    const now = await lookAt(router, slots, wanted);
    console.log(`afterwards: ${JSON.stringify(now)}`);
    wanted.rss ??= now.rss;
    assert.deepEqual(differences(wanted, now), [], `seed ${SEED}`);
    assert.deepEqual(tally.violations.slice(0, 5), [], `${tally.violations.length} violations, seed ${SEED}`);
    assert.ok(tally.exact > tally.requests / 2, 'most are served');
  };
  await s.step(`the first ${WARM_UP_MINUTES} minutes`, () => phase(WARM_UP_MINUTES));
  const phases = Math.round((MINUTES - WARM_UP_MINUTES) / PHASE_MINUTES);
  for (let i = 1; i <= phases; ++i) await s.step(`phase ${i} of ${phases}`, () => phase(PHASE_MINUTES));
  if (process.env.SOAK_LOG) await writeFile(process.env.SOAK_LOG, router.process.stderr);
  console.log(`seed ${SEED}: ${tally.requests} requests, ${tally.exact} exact, ${tally.aborts} left, errors ${JSON.stringify(tally.errors)}; ${storm}`);
});
