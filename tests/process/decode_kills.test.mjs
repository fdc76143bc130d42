// SPDX-License-Identifier: Apache-2.0
// Decode workers that are killed under load, again and again, in every hand-off mode: what the prefill workers had set aside for
// them is taken by another one. No block stays pinned, and none has to wait for its lease.
//
// Each round kills one decode worker after the other, until none is left, and then starts all again. Between two kills all requests come to
// their end: none can lose two workers, which would make it poison, and the blocks of poison are not released.
//
// BATON_KILLS_ROUNDS is the number of rounds of each hand-off; BATON_KILLS_SEED repeats a plan; BATON_KILLS_ONLY runs the hand-offs with
// this in their name.
import assert from 'node:assert/strict';

import { Dice, pause } from './support/dice.mjs';
import { Router } from './support/fleet.mjs';
import { scenario } from './support/scenario.mjs';
import { HANDOFFS, Slot, rest } from './support/slot.mjs';
import { Tally, load } from './support/tally.mjs';

const ROUNDS = Number(process.env.BATON_KILLS_ROUNDS ?? 2);
const SEED = Number(process.env.BATON_KILLS_SEED ?? Date.now() % 1_000_000);
const ONLY = process.env.BATON_KILLS_ONLY ?? '';

const PREFILLS = 2;
const DECODES = 2;
// No worker hangs, so a slow one has a busy machine. A prefill leg whose client has left is closed before its lease ends.
const TIMEOUTS = { connect: '5s', first_byte: '30s', idle: '30s', handoff_grace: '4s' };

// What may end with a lease all the same. A push is not released where its decode worker ended with its connection: the blocks may be
// under way, and vLLM would never free those of a second push. TensorRT-LLM gives no other worker the blocks that one had begun to fetch.
const left = {
  nixl_push: () => 0,
  context_first: ({ leaked, leaked_in_transfer: moving }) => leaked - moving,
};
const leftBy = (handoff) => left[handoff] ?? (({ leaked }) => leaked);

/** Kills the worker while requests run on it; returns when all of them have ended. */
async function killUnderLoad(router, victim, engine, dice, tally) {
  let goesOn = true;
  const running = load(router, engine, dice, tally, () => goesOn);
  await pause(dice.between(30, 200));
  await victim.kill();
  goesOn = false;
  await running;
}

for (const [place, one] of HANDOFFS.entries()) {
  const { name, engine, handoff } = one;
  if (!name.includes(ONLY)) continue;
  scenario(`${name}: decode workers are killed, and nothing stays pinned`, async (s) => {
    const dice = new Dice(SEED * 31 + place);
    const roles = [...Array(PREFILLS).fill('prefill'), ...Array(DECODES).fill('decode')];
    const slots = await Promise.all(roles.map((role) => new Slot(s, role, one).start()));
    const models = [{ name: 'demo', retries: 3, migration: 3, workers: slots.map((slot) => slot.spec) }];
    const router = await Router.start(s, { threads: 2, timeouts: TIMEOUTS, models });
    await router.allUp();
    const tally = new Tally();
    const decodes = slots.slice(PREFILLS);
    let leaked = [];
    for (let i = 0; i < ROUNDS; ++i) {
      await s.step(`round ${i}, seed ${SEED}`, async () => {
        const first = dice.below(DECODES);
        const victims = [...decodes.slice(first), ...decodes.slice(0, first)];
        for (const [n, victim] of victims.entries()) {
          await killUnderLoad(router, victim, engine, dice, tally);
          // The blocks of the last one wait for a worker that takes them.
          if (n < DECODES - 1) await rest(router, slots.filter(({ alive }) => alive));
        }
        await Promise.all(victims.map((victim) => victim.restart()));
        const states = await rest(router, slots);
        leaked = states.slice(0, PREFILLS).map((state) => state.leaked);
        states.slice(0, PREFILLS).forEach((state, n) => {
          assert.equal(leftBy(handoff)(state), 0, `blocks of ${slots[n].sim.process.name} had to wait for their lease`);
        });
        assert.equal(await router.metric('baton_poison_requests_total'), 0);
        await router.allUp();
      });
    }
    await s.step('every answer is exact, or a clear error', () => {
      assert.deepEqual(tally.violations.slice(0, 5), [], `${tally.violations.length} violations, seed ${SEED}`);
      assert.ok(tally.exact > 0);
    });
    const counted = async (metric) => router.metric(metric);
    console.log(
      `${name}: seed ${SEED}, ${ROUNDS * DECODES} kills, ${tally.requests} requests, ${tally.exact} exact, ${tally.aborts} left, ` +
        `errors ${JSON.stringify(tally.errors)}, ${await counted('baton_retries_total')} retries, ` +
        `${await counted('baton_migrations_total')} migrations, ${await counted('baton_handoff_releases_total')} releases, ` +
        `blocks that waited for a lease ${leaked}`,
    );
  });
}
