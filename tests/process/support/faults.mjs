// SPDX-License-Identifier: Apache-2.0
// Every fault at every phase, streamed and not: the right answer or a clear error in time; never a hang, never a
// truncated success, and the router serves on. One file per engine runs this, so that they can run side by side.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { checkPassedOn } from './ask.mjs';
import { Fleet } from './fleet.mjs';
import { readAnswer, request } from './http.mjs';
import { inTime } from './process.mjs';
import { scenario } from './scenario.mjs';
import { expectedAnswer } from './text.mjs';

const CHAT = '/v1/chat/completions';
const PHASES = ['prefill', 'decode', 'aggregated'];
const TIMEOUTS = { connect: '1s', first_byte: '2500ms', idle: '2500ms' };
const ANSWERED_WITHIN = 20_000;
const MANY = 1_000; // more often than any request can be struck, so that what is left tells how often it was
// Fleets that run at once: they mostly wait for timeouts.
const CONCURRENCY = 6;

const UNREACHABLE = { statuses: [502], codes: ['engine_unreachable'] };
const FAILED = { statuses: [502], codes: ['engine_failed'] };
const KEY_REFUSED = { statuses: [502], codes: ['engine_unauthorized'] };
const REJECTED = { passed: 400 };
const TIMEOUT = { statuses: [504], codes: ['engine_timeout'] };
const NOT_THE_PROTOCOL = { statuses: [502], codes: ['engine_protocol'] };
const overloaded = (status) => ({ statuses: [status], codes: ['engine_overloaded'] });
// Before the head of the answer a reset means that the engine failed, after it that the answer broke.
const BROKEN = { statuses: [502], codes: ['engine_failed', 'stream_broken'] };
const GONE = { statuses: [502], codes: [...BROKEN.codes, ...UNREACHABLE.codes] };
// What is told of a phase once its only worker is known to be down: one that answers is tried again, unless a prefill
// would keep its blocks for it.
const down = (engine, phase) => {
  if (phase === 'prefill') return { statuses: [503], codes: ['prefill_unavailable'] };
  if (phase === 'decode' && engine !== 'sglang') return { statuses: [503], codes: ['no_eligible_worker'] };
  return UNREACHABLE;
};

/** Each fault, and what the client is told of it: the status where it strikes before the first byte, and the code. */
const FAULTS = {
  refuse: [{ kind: 'refuse' }, UNREACHABLE],
  reset: [{ kind: 'reset' }, FAILED],
  'status 400': [{ kind: 'status', status: 400 }, REJECTED],
  'status 401': [{ kind: 'status', status: 401 }, KEY_REFUSED],
  'status 429': [{ kind: 'status', status: 429 }, overloaded(429)],
  'status 500': [{ kind: 'status', status: 500 }, FAILED],
  'status 503': [{ kind: 'status', status: 503 }, overloaded(503)],
  hang: [{ kind: 'hang' }, TIMEOUT],
  'hang before a token': [{ kind: 'hang_stream', after_tokens: 0 }, TIMEOUT],
  'hang in the stream': [{ kind: 'hang_stream', after_tokens: 3 }, TIMEOUT],
  'cut at once': [{ kind: 'cut', after_tokens: 0 }, BROKEN],
  'cut in the middle': [{ kind: 'cut', after_tokens: 3 }, BROKEN],
  slow: [{ kind: 'slow', delay_ms: 20 }, undefined],
  'malformed at once': [{ kind: 'malformed', after_tokens: 0 }, NOT_THE_PROTOCOL],
  'malformed in the middle': [{ kind: 'malformed', after_tokens: 3 }, NOT_THE_PROTOCOL],
  'error event at once': [{ kind: 'error_event', after_tokens: 0 }, FAILED],
  'error event in the middle': [{ kind: 'error_event', after_tokens: 3 }, FAILED],
};

const chat = (text, stream) => ({ model: 'demo', messages: [{ role: 'user', content: text }], stream });

async function ask(fleet, body) {
  const call = request(fleet.router.address, { path: CHAT, body: JSON.stringify(body) });
  const raw = await inTime('an answer', call, ANSWERED_WITHIN);
  return { ...readAnswer(raw), headers: raw.headers, raw: raw.text };
}

function checkExact(answer, body) {
  const [expected] = expectedAnswer(body).choices;
  assert.equal(answer.status, 200, answer.raw);
  assert.equal(answer.text, expected.text);
  assert.equal(answer.finish, expected.finish);
  assert.equal(answer.error, undefined);
  assert.ok(answer.done && answer.complete, 'a whole answer');
}

/** What the client was told when a fault struck: an error that says so, in the right shape. */
function checkStruck(answer, body, told) {
  if (told.passed) return checkPassedOn(answer, told.passed);
  const { statuses, codes } = told;
  assert.equal(answer.broken, undefined, 'no broken JSON reaches the client');
  assert.ok(answer.error, `an error is told: ${answer.raw}`);
  assert.deepEqual(Object.keys(answer.error).sort(), ['code', 'message', 'param', 'type'], answer.raw);
  assert.ok(answer.error.message.length > 0 && typeof answer.error.type === 'string');
  assert.ok(codes.includes(answer.error.code), `code ${answer.error.code}, expected one of ${codes}: ${answer.raw}`);
  if (answer.status !== 200) {
    assert.ok(statuses.includes(answer.status), `status ${answer.status}, expected one of ${statuses}: ${answer.raw}`);
    if ([429, 503].includes(answer.status)) assert.match(answer.headers['retry-after'] ?? '', /^\d+$/);
  } else {
    assert.ok(body.stream, 'an error that is not streamed has a status');
    assert.ok(!answer.done, 'a failed stream does not end with [DONE]');
    const { text } = expectedAnswer(body).choices[0];
    assert.ok(text.startsWith(answer.text), 'what was streamed before the error is right');
  }
}

/**
 * The same where the legs run side by side and the prefill one is struck: the decode worker may have had all it
 * needs, or may be the first to tell that its partner failed.
 */
function checkStruckBeside(answer, body, told) {
  if (answer.status === 200 && !answer.error) return checkExact(answer, body);
  if (told.passed && answer.status === told.passed) return checkPassedOn(answer, told.passed);
  const { statuses = [], codes = [] } = told;
  return checkStruck(answer, body, { statuses: [...statuses, ...FAILED.statuses], codes: [...codes, ...FAILED.codes] });
}

const checkFor = (engine, phase) => (engine === 'sglang' && phase === 'prefill' ? checkStruckBeside : checkStruck);

// The only worker of a phase, and one attempt: what is told is what this worker did. The hand-off or nothing.
const alone = (phase) => ({ retries: 0, ...(phase === 'aggregated' ? {} : { disaggregation: 'required' }) });

const countsFor = (phase) => (phase === 'aggregated' ? { aggregated: 1 } : { prefill: 1, decode: 1 });

// A prefill makes one token, so nothing can happen in the middle of its answer.
const canStrike = (phase, { after_tokens: after = 0 }) => phase !== 'prefill' || after === 0;

async function checkRouterServes(fleet, name) {
  await fleet.router.ready();
  const body = chat(`Clean after ${name}`, true);
  checkExact(await ask(fleet, body), body);
}

/** The answer while faults are on, and what is left of them. */
async function askUnder(fleet, sim, body) {
  const answer = await ask(fleet, body);
  return [answer, await sim.faults()];
}

async function strike(fleet, sim, phase, stream, name) {
  const [fault, told] = FAULTS[name];
  const body = chat(`Struck by ${name} at ${phase} ${stream}`, stream);
  await sim.fault({ ...fault, phase, count: MANY });
  const [answer, left] = await askUnder(fleet, sim, body).finally(() => sim.clearFaults());
  if (fault.kind !== 'refuse') assert.ok(left[0].count < MANY, 'the fault struck');
  if (told) checkFor(sim.engine, phase)(answer, body, told);
  else checkExact(answer, body);
  await checkRouterServes(fleet, name);
}

function everyFault(engine, phase) {
  scenario(`faults at ${phase}`, async (s) => {
    // Half a hand-over that a fault leaves behind is given up after the lease.
    const sims = { leaseMs: 5000 };
    const options = { engine, counts: countsFor(phase), sim: sims, config: { timeouts: TIMEOUTS }, model: alone(phase) };
    const fleet = await Fleet.start(s, options);
    const [sim] = fleet.of(phase);
    await fleet.router.ready();
    for (const [name, [fault]] of Object.entries(FAULTS)) {
      if (!canStrike(phase, fault)) continue;
      for (const stream of [false, true]) {
        await s.step(`${name}, ${stream ? 'streamed' : 'whole'}`, () => strike(fleet, sim, phase, stream, name));
      }
    }
    await s.step('no request stays', () => fleet.idle());
  });
}

function death(engine, phase, stream) {
  scenario(`a worker that dies at ${phase}, ${stream ? 'streamed' : 'whole'}`, async (s) => {
    const options = { engine, counts: countsFor(phase), config: { timeouts: TIMEOUTS }, model: alone(phase) };
    const fleet = await Fleet.start(s, options);
    const [sim] = fleet.of(phase);
    await fleet.router.ready();
    sim.process.expectedExit = undefined;
    await sim.fault({ kind: 'die', phase, after_tokens: phase === 'prefill' ? 0 : 3 });
    const last = chat('Last words', stream);
    checkFor(engine, phase)(await ask(fleet, last), last, GONE);
    assert.equal((await sim.process.ended()).code, 70, 'the fault ended it');
    const again = chat('Anybody?', stream);
    const noticed = { statuses: [502, 503], codes: [...UNREACHABLE.codes, ...down(engine, phase).codes] };
    checkStruck(await ask(fleet, again), again, noticed);
    checkStruck(await ask(fleet, again), again, down(engine, phase));
  });
}

function holes(engine) {
  scenario('with a worker of each role down the others serve', async (s) => {
    const fleet = await Fleet.start(s, { engine, counts: { prefill: 2, decode: 2 }, config: { timeouts: TIMEOUTS } });
    await fleet.of('prefill')[0].fault({ kind: 'refuse' });
    await fleet.of('decode')[1].fault({ kind: 'refuse' });
    for (let i = 0; i < 8; ++i) {
      const body = chat(`Around the hole ${i}`, i % 2 === 0);
      checkExact(await ask(fleet, body), body);
    }
    for (const sim of fleet.sims) await sim.clearFaults();
    await fleet.idle();
  });
}

// Those that strike before the client has a token and are not its own fault: another worker makes them good.
const SAVED = [
  'refuse', 'reset', 'status 401', 'status 429', 'status 500', 'status 503', 'hang', 'hang before a token',
  'error event at once', 'cut at once', 'malformed at once',
];
// A prefill answer that is lost names blocks that cannot be asked for: only the lease frees them.
const LOSES_BLOCKS = ['cut at once', 'malformed at once'];

async function checkSaved(fleet, sim, phase, name) {
  const [fault] = FAULTS[name];
  await fleet.router.allUp();
  const { requests } = await sim.state();
  await sim.fault({ ...fault, phase, count: MANY });
  try {
    // In turn, so that each kind of answer meets the worker once. Streamed, the broken event follows one that is sound.
    const twice = name === 'malformed at once' && phase !== 'prefill' ? [false, false] : [false, false, true, true];
    for (const [i, stream] of twice.entries()) {
      const body = chat(`Saved from ${name} at ${phase}, ${i}`, stream);
      checkExact(await ask(fleet, body), body);
    }
    if (fault.kind !== 'refuse') assert.ok((await sim.state()).requests > requests, 'the worker was asked');
  } finally {
    await sim.clearFaults();
  }
}

function saved(engine, phase) {
  scenario(`a second worker makes good what fails at ${phase}`, async (s) => {
    const counts = Object.fromEntries(Object.keys(countsFor(phase)).map((role) => [role, 2]));
    const model = phase === 'aggregated' ? {} : { disaggregation: 'required' };
    // The worker that fails is asked again and again, so none may be ejected.
    const config = { timeouts: TIMEOUTS, health: { failures: 1000 } };
    const fleet = await Fleet.start(s, { engine, counts, config, model });
    const [sim] = fleet.of(phase);
    const step = (name) => s.step(name, () => checkSaved(fleet, sim, phase, name));
    for (const name of SAVED.filter((one) => !LOSES_BLOCKS.includes(one))) await step(name);
    // A decode worker that breaks in its answer may have taken the blocks before.
    await s.step('nothing stays, and nothing is pinned', () => fleet.settle({ inDoubt: phase === 'decode' }));
    for (const name of LOSES_BLOCKS) await step(name);
    await s.step('no request stays, and the log tells who failed', async () => {
      await fleet.idle();
      assert.ok((await fleet.router.metric('baton_retries_total')) >= SAVED.length);
      const leg = phase === 'prefill' ? 'prefill' : 'decode';
      const failed = fleet.router.logLines('leg_failed').filter((line) => line.leg === leg);
      assert.deepEqual([...new Set(failed.map(({ level, worker }) => `${level} ${worker}`))], [`warning ${sim.address}`]);
    });
  });
}

/** All of it for one engine. */
export function testFaults(engine) {
  describe(`${engine} under faults`, { concurrency: CONCURRENCY }, () => {
    for (const phase of PHASES) everyFault(engine, phase);
    for (const phase of PHASES) for (const stream of [false, true]) death(engine, phase, stream);
    for (const phase of PHASES) saved(engine, phase);
    holes(engine);
  });
}
