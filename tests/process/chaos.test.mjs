// SPDX-License-Identifier: Apache-2.0
// Every hand-off under load while workers die, hang, lie and come back, and clients leave: what is answered is exact,
// what is not answered is told so, and when the storm is over nothing of it is left anywhere.
//
// BATON_CHAOS_SECONDS is the length of the storm, all hand-offs together; BATON_CHAOS_SEED repeats one (its plan, not
// its timing); BATON_CHAOS_ONLY runs the hand-offs with this in their name; BATON_CHAOS_LOG is where the router's logs go.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';

import { Call, readStream } from './support/call.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const SECONDS = Number(process.env.BATON_CHAOS_SECONDS ?? 36);
const SEED = Number(process.env.BATON_CHAOS_SEED ?? Date.now() % 1_000_000);
const ONLY = process.env.BATON_CHAOS_ONLY ?? '';

const HANDOFFS = [
  { name: 'vllm nixl_pull', engine: 'vllm', handoff: 'nixl_pull', share: 3 },
  { name: 'sglang bootstrap', engine: 'sglang', handoff: 'bootstrap', share: 3 },
  { name: 'trtllm context_first', engine: 'trtllm', handoff: 'context_first', share: 3 },
  { name: 'vllm nixl_push', engine: 'vllm', handoff: 'nixl_push', share: 1 },
  { name: 'vllm mooncake', engine: 'vllm', handoff: 'mooncake', share: 1 },
  { name: 'trtllm generation_first', engine: 'trtllm', handoff: 'generation_first', share: 1 },
];
const SHARES = HANDOFFS.reduce((sum, { share }) => sum + share, 0);

const PER_ROLE = 4;
const CLIENTS = 24;
const WARM_UP_MS = 1_000;
// A request waits for a hanging worker, is tried again, and each time releases what it leaves: all within the lease.
const TIMEOUTS = { connect: '500ms', first_byte: '1500ms', idle: '1500ms', handoff_grace: '1s' };
const LEASE_MS = 8_000;
const ANSWERED_WITHIN = 30_000;
const LIMITS = { minOutput: 8, maxOutput: 48 };
const GROWTH = 64 * 1024 * 1024;
// Freed memory that a sanitizer holds back would count as growth.
const ENVIRONMENT = { ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64` };
const TOLD = [
  'engine_failed', 'engine_overloaded', 'engine_protocol', 'engine_timeout', 'engine_unreachable', 'no_eligible_worker', 'poison_request',
  'no_workers', 'stream_broken',
];

// A prefill worker whose answer is lost on its way keeps blocks that nobody was told of: only their lease can end that.
// One prefill worker gets such faults; the others must never have to wait for a lease.
const LOSING = ['cut', 'malformed', 'refuse'];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Mulberry32: the same numbers for the same seed on every machine. */
class Dice {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let z = this.state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
  }

  below(bound) {
    return Math.floor(this.next() * bound);
  }

  between(from, to) {
    return from + this.below(to - from + 1);
  }

  chance(share) {
    return this.next() < share;
  }

  of(list) {
    return list[this.below(list.length)];
  }
}

/** One worker's place in the fleet: an address, at which one process follows the other. */
class Seat {
  constructor(scenario, role, { engine, handoff }) {
    this.scenario = scenario;
    this.role = role;
    this.flags = { engine, handoff, role, leaseMs: LEASE_MS, decodeMs: 3, transferMs: 1, ...LIMITS };
    this.keepsItsWord = false;
  }

  /** Where it meets others is its configuration, and stays; who it is (the engine's id) is new each time. */
  async start() {
    const { engine, handoff, role } = this.flags;
    const meets = role === 'prefill' && ['bootstrap', 'mooncake'].includes(handoff);
    const ready = this.scenario.file(`bootstrap-${this.scenario.processes.length}-${this.role}-${Math.random()}`);
    const [port, bootstrap] = [this.port ?? 0, this.bootstrapPort ?? 0];
    const flags = { ...this.flags, port, ...(meets ? { bootstrapPort: bootstrap, bootstrapReadyFile: ready } : {}) };
    this.sim = await Sim.start(this.scenario, flags);
    this.port = Number(this.sim.address.split(':')[1]);
    if (meets) this.bootstrapPort = Number((await readFile(ready, 'utf8')).trim().split(':')[1]);
    this.alive = true;
    this.spec = { url: `http://${this.sim.address}`, engine, role, handoff, ...(meets ? { bootstrap_port: this.bootstrapPort } : {}) };
    return this;
  }

  async kill() {
    this.alive = false;
    this.sim.process.expectedExit = undefined;
    this.sim.process.signal('SIGKILL');
    await this.sim.process.ended();
  }

  restart() {
    return Sim.again(this.scenario, () => this.start());
  }
}

/** What happens to the fleet. */
class Storm {
  constructor(seats, dice) {
    this.seats = seats;
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
    const victim = this.dice.of(this.seats);
    const living = this.seats.filter((seat) => seat.alive && seat.role === victim.role);
    if (!victim.alive || living.length <= 2) return;
    ++this.kills;
    if (victim.role === 'decode') ++this.decodeKills;
    await victim.kill();
    const away = this.dice.between(0, 1500);
    this.restarts.push(pause(away).then(() => victim.restart()));
  }

  async #fault() {
    const { dice } = this;
    const seat = dice.of(this.seats);
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
    if (!seat.alive || (LOSING.includes(fault.kind) && seat.keepsItsWord)) return;
    this.faults[fault.kind] = (this.faults[fault.kind] ?? 0) + 1;
    await seat.sim.fault(fault).catch(() => {}); // it may die meanwhile
  }

  /** All are there again, and nothing is wrong with any. */
  async calm() {
    await inTime('all workers are back', Promise.all(this.restarts), 60_000);
    for (const seat of this.seats) await seat.sim.clearFaults();
  }
}

function someRequest(dice, engine, number) {
  const words = dice.chance(0.1) ? dice.between(400, 2000) : dice.between(1, 80);
  const text = `Request ${number}: ${'word and '.repeat(words)}so on`;
  const stream = dice.chance(0.6);
  const more = { ...(stream && dice.chance(0.5) ? { stream_options: { include_usage: true } } : {}) };
  if (dice.chance(0.3)) more.max_tokens = dice.between(1, 40);
  if (dice.chance(0.1)) Object.assign(more, { n: 2, seed: number });
  if (engine === 'vllm' && stream && dice.chance(0.1)) more.return_token_ids = true;
  if (dice.chance(0.5)) return { model: 'demo', messages: [{ role: 'user', content: text }], stream, ...more };
  return { model: 'demo', prompt: text, stream, ...more };
}

/** What became of the requests. */
class Tally {
  requests = 0;
  exact = 0;
  aborts = 0;
  errors = {};
  violations = [];

  blame(call, why) {
    const { status, text } = call;
    this.violations.push(`${why}\n  request ${JSON.stringify(call.body).slice(0, 200)}\n  status ${status}, answer …${text.slice(-400)}`);
  }

  take(call, answer) {
    ++this.requests;
    try {
      this.#judge(call, answer);
    } catch (error) {
      this.blame(call, error.message);
    }
  }

  #judge(call, answer) {
    const { body } = call;
    const expected = expectedAnswer(body, LIMITS);
    if (call.left) {
      ++this.aborts;
      if (answer.status === 200 && body.stream) checkBeginning(readStream(cutAtEvent(answer.text)), expected);
      return;
    }
    assert.equal(answer.failed, undefined, 'no connection is cut without a word');
    assert.ok(answer.complete, 'every answer has an end');
    if (answer.status !== 200) return this.#told(JSON.parse(answer.text).error);
    if (!body.stream) {
      checkWhole(JSON.parse(answer.text), body, expected);
    } else {
      const stream = readStream(answer.text);
      if (stream.errors.length > 0) {
        assert.equal(stream.done, 0, 'no [DONE] after an error');
        assert.equal(stream.errors.length, 1, 'one error');
        checkBeginning(stream, expected);
        return this.#told(stream.errors[0]);
      }
      checkStream(stream, body, expected);
    }
    ++this.exact;
  }

  #told(error) {
    assert.ok(error?.message && TOLD.includes(error.code), `a clear error: ${JSON.stringify(error)}`);
    this.errors[error.code] = (this.errors[error.code] ?? 0) + 1;
  }
}

const cutAtEvent = (text) => text.slice(0, text.lastIndexOf('\n\n') + 2);

function checkBeginning(stream, expected) {
  stream.choices.forEach((choice, i) => {
    assert.ok(expected.choices[i].text.startsWith(choice.text), `a wrong beginning: ${choice.text}`);
  });
}

function checkUsage(usage, { promptTokens, completionTokens }) {
  const total = promptTokens + completionTokens;
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [promptTokens, completionTokens, total], 'usage');
}

function checkWhole(answer, body, expected) {
  assert.equal(answer.choices.length, expected.choices.length);
  for (const { index, text, message, finish_reason: finish } of answer.choices) {
    assert.equal(text ?? message.content, expected.choices[index].text);
    assert.equal(finish, expected.choices[index].finish);
  }
  checkUsage(answer.usage, expected);
}

function checkStream(stream, body, expected) {
  assert.equal(stream.done, 1, 'one [DONE]');
  assert.equal(stream.ids.size, 1, 'one id');
  assert.equal(stream.choices.length, expected.choices.length);
  stream.choices.forEach((choice, i) => {
    assert.equal(choice.text, expected.choices[i].text);
    assert.deepEqual(choice.finishes, [expected.choices[i].finish]);
    if (body.messages) assert.equal(choice.roles, 1, 'it is said once who speaks');
    if (body.return_token_ids && !body.n) assert.deepEqual(choice.tokenIds, expected.choices[i].ids);
  });
  if (body.stream_options) checkUsage(stream.usages.at(-1), expected);
}

/** One client after the other's fashion: sends, waits or leaves, and begins again. */
async function client(router, engine, dice, tally, until, mayLeave) {
  while (Date.now() < until) {
    const call = new Call(router.address, someRequest(dice, engine, dice.below(1e9)));
    if (mayLeave && dice.chance(0.15)) {
      await Promise.race([call.ended, pause(dice.between(0, 120))]);
      if (!call.over) call.leave();
    }
    const answer = await inTime('an answer', call.ended, ANSWERED_WITHIN).catch((error) => tally.blame(call, error.message));
    if (!answer) return;
    tally.take(call, answer);
  }
}

function load(router, engine, dice, tally, milliseconds, mayLeave) {
  const until = Date.now() + milliseconds;
  const clients = Array.from({ length: CLIENTS }, () => new Dice(dice.below(2 ** 32)));
  return Promise.all(clients.map((own) => client(router, engine, own, tally, until, mayLeave)));
}

async function residentBytes(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024;
}

/** Waits until nothing runs, waits or is pinned anywhere; returns the last states. */
async function rest(router, seats) {
  let seen;
  await until(
    () => `fleet at rest; last seen ${JSON.stringify(seen)}`,
    async () => {
      const states = await Promise.all(seats.map((seat) => seat.sim.state()));
      const busy = ({ running, waiting, pinned }) => running + waiting + pinned;
      seen = { inFlight: await router.inFlight(), states: states.map(({ running, waiting, pinned, leaked }) => [running, waiting, pinned, leaked].join('/')) };
      if (!states.every((state) => busy(state) === 0) || seen.inFlight !== 0) return false;
      seen.states = states;
      return true;
    },
    LEASE_MS + 30_000,
  );
  return seen.states;
}

for (const [place, one] of HANDOFFS.entries()) {
  const { name, engine, handoff, share } = one;
  if (!name.includes(ONLY)) continue;
  scenario(`${name} in a storm`, async (s) => {
    const dice = new Dice(SEED * 31 + place);
    const roles = ['prefill', 'decode'].flatMap((role) => Array(PER_ROLE).fill(role));
    const seats = await Promise.all(roles.map((role) => new Seat(s, role, one).start()));
    seats.slice(1, PER_ROLE).forEach((seat) => (seat.keepsItsWord = true));
    const models = [{ name: 'demo', retries: 3, migration: 3, workers: seats.map((seat) => seat.spec) }];
    const router = await Router.start(s, { threads: 2, timeouts: TIMEOUTS, models }, ENVIRONMENT);
    await router.allUp();
    const counted = async (metric) => router.metric(metric);

    const calmly = new Tally();
    let atFirst;
    await s.step('before it, all is exact', async () => {
      await load(router, engine, dice, calmly, WARM_UP_MS, false);
      assert.deepEqual(calmly.violations, []);
      assert.equal(calmly.exact, calmly.requests);
      await rest(router, seats);
      atFirst = await residentBytes(router.process.pid);
    });

    const tally = new Tally();
    const storm = new Storm(seats, dice);
    const length = (SECONDS * 1000 * share) / SHARES;
    await Promise.all([load(router, engine, dice, tally, length, true), storm.blow(Date.now() + length)]);
    await storm.calm();
    let states = [];
    await s.step('every answer is exact, or a clear error', () => {
      assert.deepEqual(tally.violations.slice(0, 5), [], `${tally.violations.length} violations, seed ${SEED}`);
      assert.ok(tally.exact > 0);
    });
    await s.step('nothing stays', async () => {
      states = await rest(router, seats);
    });
    await s.step('nothing had to wait for its lease', () => {
      seats.forEach((seat, i) => {
        const { leaked, leaked_in_transfer: moving } = states[i];
        // A push whose decode worker broke may be under way: a second one would wait for ever, so the lease frees it.
        // What a request left that ended two workers is offered to no third one, not even to release it.
        const released = handoff !== 'nixl_push' && !tally.errors.poison_request;
        if (seat.keepsItsWord && released) assert.equal(leaked - moving, 0, `${seat.sim.process.name}, seed ${SEED}`);
        // What a decode worker was fetching when it was killed may be released by no other one, by engine.
        if (storm.decodeKills === 0) assert.equal(moving, 0, `${seat.sim.process.name}, seed ${SEED}`);
      });
    });
    await s.step('after it, all is exact again', async () => {
      const after = new Tally();
      await load(router, engine, dice, after, WARM_UP_MS, false);
      assert.deepEqual(after.violations, []);
      assert.deepEqual(after.errors, {});
      assert.ok(after.requests >= CLIENTS);
      await rest(router, seats);
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
