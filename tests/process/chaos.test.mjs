// SPDX-License-Identifier: Apache-2.0
// Every hand-off under load while workers die, hang, lie and come back, and clients leave: what is answered is exact,
// what is not answered is told so, and when the storm is over nothing of it is left anywhere.
//
// BATON_CHAOS_SECONDS is the length of the storm, all hand-offs together; BATON_CHAOS_SEED repeats one (its plan, not
// its timing); BATON_CHAOS_ONLY runs the hand-offs with this in their name; BATON_CHAOS_LOG is where the router's logs go.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';

import { Dice, pause } from './support/dice.mjs';
import { Router } from './support/fleet.mjs';
import { inTime, residentBytes } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { HANDOFFS, Slot, rest } from './support/slot.mjs';
import { CLIENTS, Tally, during, load } from './support/tally.mjs';

const SECONDS = Number(process.env.BATON_CHAOS_SECONDS ?? 36);
const SEED = Number(process.env.BATON_CHAOS_SEED ?? Date.now() % 1_000_000);
const ONLY = process.env.BATON_CHAOS_ONLY ?? '';

// The default of each engine gets three parts of the time.
const shareOf = ({ handoff }) => (['nixl_pull', 'bootstrap', 'context_first'].includes(handoff) ? 3 : 1);
const SHARES = HANDOFFS.reduce((sum, one) => sum + shareOf(one), 0);

const PER_ROLE = 4;
const WARM_UP_MS = 1_000;
// A request waits for a hanging worker, is tried again, and each time releases what it leaves: all within the lease.
const TIMEOUTS = { connect: '500ms', first_byte: '1500ms', idle: '1500ms', handoff_grace: '1s' };
const GROWTH = 64 * 1024 * 1024;
// Freed memory that a sanitizer holds back would count as growth.
const ENVIRONMENT = { ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64` };
// A prefill worker whose answer is lost on its way keeps blocks that no other worker knows of: only their lease can end that.
// One prefill worker gets such faults; the others must never have to wait for a lease.
const LOSING = ['cut', 'malformed', 'refuse'];

/** What happens to the fleet. */
class Storm {
  constructor(slots, dice) {
    this.slots = slots;
    this.dice = dice;
    this.kills = 0;
    this.decodeKills = 0;
    this.faults = {};
    this.restarts = [];
  }

  async blow(until) {
    while (Date.now() < until) {
      await pause(this.dice.between(30, 200));
      if (this.dice.chance(0.25)) await this.#kill();
      else await this.#fault();
    }
  }

  async #kill() {
    const victim = this.dice.of(this.slots);
    const living = this.slots.filter((slot) => slot.alive && slot.role === victim.role);
    if (!victim.alive || living.length <= 2) return;
    ++this.kills;
    if (victim.role === 'decode') ++this.decodeKills;
    await victim.kill();
    const away = this.dice.between(0, 1500);
    this.restarts.push(pause(away).then(() => victim.restart()));
  }

  async #fault() {
    const { dice } = this;
    const slot = dice.of(this.slots);
    const after_tokens = dice.of([0, 0, 1, 3, 10]);
    const fault = dice.of([
      { kind: 'hang', count: 1 },
      { kind: 'hang_stream', after_tokens, count: 1 },
      { kind: 'cut', after_tokens, count: dice.between(1, 3) },
      { kind: 'reset', count: dice.between(1, 3) },
      { kind: 'status', status: dice.of([500, 503]), count: dice.between(1, 3) },
      { kind: 'error_event', after_tokens, count: dice.between(1, 3) },
      { kind: 'malformed', after_tokens, count: dice.between(1, 2) },
      { kind: 'slow', delay_ms: dice.between(1, 30), count: dice.between(1, 5) },
      { kind: 'refuse', for_ms: dice.between(20, 600) },
    ]);
    if (!slot.alive || (LOSING.includes(fault.kind) && slot.keepsItsWord)) return;
    this.faults[fault.kind] = (this.faults[fault.kind] ?? 0) + 1;
    await slot.sim.fault(fault).catch(() => {}); // it may die meanwhile
  }

  /** All are there again, and nothing is wrong with any. */
  async calm() {
    await inTime('all workers are back', Promise.all(this.restarts), 60_000);
    for (const slot of this.slots) await slot.sim.clearFaults();
  }
}

for (const [place, one] of HANDOFFS.entries()) {
  const { name, engine, handoff } = one;
  if (!name.includes(ONLY)) continue;
  scenario(`${name} in a storm`, async (s) => {
    const dice = new Dice(SEED * 31 + place);
    const roles = ['prefill', 'decode'].flatMap((role) => Array(PER_ROLE).fill(role));
    const slots = await Promise.all(roles.map((role) => new Slot(s, role, one).start()));
    slots.slice(1, PER_ROLE).forEach((slot) => (slot.keepsItsWord = true));
    const models = [{ name: 'demo', retries: 3, migration: 3, workers: slots.map((slot) => slot.spec) }];
    const router = await Router.start(s, { threads: 2, timeouts: TIMEOUTS, models }, ENVIRONMENT);
    await router.allUp();
    const counted = async (metric) => router.metric(metric);

    const calmly = new Tally();
    let atFirst;
    await s.step('before it, all is exact', async () => {
      await load(router, engine, dice, calmly, during(WARM_UP_MS), { leaves: 0 });
      assert.deepEqual(calmly.violations, []);
      assert.equal(calmly.exact, calmly.requests);
      await rest(router, slots);
      atFirst = await residentBytes(router.process.pid);
    });

    const tally = new Tally();
    const storm = new Storm(slots, dice);
    const length = (SECONDS * 1000 * shareOf(one)) / SHARES;
    await Promise.all([load(router, engine, dice, tally, during(length)), storm.blow(Date.now() + length)]);
    await storm.calm();
    let states = [];
    await s.step('every answer is exact, or a clear error', () => {
      assert.deepEqual(tally.violations.slice(0, 5), [], `${tally.violations.length} violations, seed ${SEED}`);
      assert.ok(tally.exact > 0);
    });
    await s.step('nothing stays', async () => {
      states = await rest(router, slots);
    });
    await s.step('nothing had to wait for its lease', () => {
      slots.forEach((slot, i) => {
        const { leaked, leaked_in_transfer: moving } = states[i];
        // A push whose decode worker broke may be under way: a second one would wait for ever, so the lease frees it.
        // What a request left that ended two workers is offered to no third one, not even to release it.
        const released = handoff !== 'nixl_push' && !tally.errors.poison_request;
        if (slot.keepsItsWord && released) assert.equal(leaked - moving, 0, `${slot.sim.process.name}, seed ${SEED}`);
        // What a decode worker was fetching when it was killed may be released by no other one, by engine.
        if (storm.decodeKills === 0) assert.equal(moving, 0, `${slot.sim.process.name}, seed ${SEED}`);
      });
    });
    await s.step('after it, all is exact again', async () => {
      const after = new Tally();
      await load(router, engine, dice, after, during(WARM_UP_MS), { leaves: 0 });
      assert.deepEqual(after.violations, []);
      assert.deepEqual(after.errors, {});
      assert.ok(after.requests >= CLIENTS);
      await rest(router, slots);
    });
    await s.step('memory is back', async () => {
      const growth = (await residentBytes(router.process.pid)) - atFirst;
      assert.ok(growth < GROWTH, `grew by ${growth} bytes`);
      assert.equal(await counted('baton_escaped_exceptions_total'), 0);
    });
    if (process.env.BATON_CHAOS_LOG) await writeFile(`${process.env.BATON_CHAOS_LOG}.${handoff}`, router.process.stderr);
    const retries = await counted('baton_retries_total');
    const migrations = await counted('baton_migrations_total');
    const releases = await counted('baton_handoff_releases_total');
    const leaks = (key) => states.slice(0, PER_ROLE).map((state) => state[key]);
    console.log(
      `${name}: seed ${SEED}, ${tally.requests} requests, ${tally.exact} exact, ${tally.aborts} left, ` +
        `errors ${JSON.stringify(tally.errors)}, ${storm.kills} kills, faults ${JSON.stringify(storm.faults)}, ` +
        `${retries} retries, ${migrations} migrations, ${releases} releases, ` +
        `leaked blocks ${leaks('leaked')} (in transfer ${leaks('leaked_in_transfer')})`,
    );
  });
}
