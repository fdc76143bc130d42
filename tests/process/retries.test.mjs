// SPDX-License-Identifier: Apache-2.0
// What fails before the first token is done again by another worker, and the client sees none of it; or is told, where
// the configuration says so.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { ask, chat, checkExact, checkPassedOn, checkRefused, servedBy } from './support/ask.mjs';
import { ENGINES, Fleet } from './support/fleet.mjs';
import { scenario } from './support/scenario.mjs';

const TIMEOUTS = { connect: '1s', first_byte: '3s', idle: '3s' };
const CONFIG = { threads: 1, timeouts: TIMEOUTS };
const PREFILL_FAULTS = {
  'status 500': { kind: 'status', status: 500 },
  'hang beyond first_byte': { kind: 'hang' },
  'cut answer': { kind: 'cut' },
  reset: { kind: 'reset' },
  death: { kind: 'die' },
};
const DECODE_FAULTS = {
  'refusal 503': { kind: 'status', status: 503 },
  'status 500': { kind: 'status', status: 500 },
  reset: { kind: 'reset' },
  'death before its first token': { kind: 'die' },
};

async function startFleet(s, engine, counts, model = {}) {
  const fleet = await Fleet.start(s, { engine, counts, config: CONFIG, model: { disaggregation: 'required', ...model } });
  await fleet.router.allUp();
  return fleet;
}

/** Asks until the struck worker has had a leg; round robin brings it there at the second request at the latest. */
async function askStruck(fleet, sim, label, stream, check) {
  const { requests } = await sim.state();
  for (let i = 0; i < 2; ++i) {
    await fleet.router.allUp(); // one that pushed back is passed over for a while
    const body = chat(`${label} ${i}`, { stream });
    const id = `${label}-${i}`.replaceAll(' ', '-');
    check(await ask(fleet.router, body, { 'X-Request-Id': id }), body);
    const asked = sim.process.exited || (await sim.state().catch(() => ({ requests: Infinity }))).requests > requests;
    if (asked) return fleet.router.requestLine(id);
  }
  throw new Error('the struck worker was never asked');
}

describe('retries', { concurrency: 3 }, () => {
  for (const engine of ENGINES) {
    for (const [name, fault] of Object.entries(PREFILL_FAULTS)) {
      // An SGLang prefill answers when decode has everything: whether its answer is cut no longer matters.
      if (engine === 'sglang' && fault.kind === 'cut') continue;
      scenario(`${engine}: prefill, ${name}: the second prefill worker serves`, async (s) => {
        // If two legs wait for each other, it is unknown which one hangs: a second pair has neither.
        const fleet = await startFleet(s, engine, { prefill: 2, decode: 2 });
        const [bad, good] = fleet.of('prefill');
        for (const stream of name === 'death' ? [true] : [false, true]) {
          await bad.fault({ ...fault, phase: 'prefill' });
          if (fault.kind === 'die') bad.process.expectedExit = undefined;
          const line = await askStruck(fleet, bad, `${name} ${stream}`, stream, (answer, body) => {
            checkExact(answer, body);
            assert.equal(servedBy(answer).prefill, good.address);
          });
          assert.ok(line.retries >= 1, JSON.stringify(line));
          assert.equal(line.prefill_worker, good.address);
          if (fault.kind !== 'die') await bad.clearFaults();
        }
        // Blocks whose names were lost with an answer, and those of a dead worker, cannot be released.
        if (['reset', 'status 500', 'hang beyond first_byte'].includes(name)) await fleet.settle();
      });
    }

    for (const [name, fault] of Object.entries(DECODE_FAULTS)) {
      scenario(`${engine}: decode, ${name}: the other decode worker serves`, async (s) => {
        const fleet = await startFleet(s, engine, { prefill: 1, decode: 2 });
        const [bad, good] = fleet.of('decode');
        const [prefill] = fleet.of('prefill');
        for (const stream of fault.kind === 'die' ? [true] : [false, true]) {
          await bad.fault({ ...fault, phase: 'decode' });
          if (fault.kind === 'die') bad.process.expectedExit = undefined;
          const before = (await prefill.legs()).length;
          let asked = 0;
          const line = await askStruck(fleet, bad, `${name} ${stream}`, stream, (answer, body) => {
            ++asked;
            checkExact(answer, body);
            assert.equal(servedBy(answer).decode, good.address);
          });
          assert.equal(line.decode_worker, good.address);
          assert.equal(line.retries, 1, JSON.stringify(line));
          // A refusal leaves what the prefill kept as it was; the legs of SGLang belong together.
          const again = engine === 'sglang' || name !== 'refusal 503' ? 1 : 0;
          assert.equal((await prefill.legs()).length - before, asked + again, 'prefill legs');
          if (fault.kind !== 'die') await bad.clearFaults();
        }
        if (fault.kind !== 'die') await fleet.settle();
      });
    }
  }

  for (const engine of ENGINES) {
    scenario(`${engine}: on_prefill_failure and retries decide`, async (s) => {
      const fault = { kind: 'status', status: 500, phase: 'prefill' };
      const body = chat('Whatever happens');
      const cases = {
        fail: [{ on_prefill_failure: 'fail' }, 1],
        retry: [{ on_prefill_failure: 'retry' }, 2],
        'retry, retries 0': [{ on_prefill_failure: 'retry', retries: 0 }, 1],
        fallback: [{ on_prefill_failure: 'fallback', disaggregation: 'auto' }, 2],
        'fallback, retries 0': [{ on_prefill_failure: 'fallback', disaggregation: 'auto', retries: 0 }, 1],
      };
      for (const [name, [model, legs]] of Object.entries(cases)) {
        await s.step(name, async () => {
          const fleet = await startFleet(s, engine, { prefill: 2, decode: 1 }, model);
          for (const sim of fleet.of('prefill')) await sim.fault(fault);
          const answer = await ask(fleet.router, body, { 'X-Request-Id': 'decided' });
          const states = await fleet.settle();
          const asked = fleet.sims.reduce((sum, sim, i) => sum + (sim.role === 'prefill' ? states[i].requests : 0), 0);
          assert.equal(asked, legs, 'prefill workers asked');
          const line = await fleet.router.requestLine('decided');
          assert.ok((line.retries ?? 0) >= legs - 1, JSON.stringify(line));
          if (name.startsWith('fallback') && engine !== 'sglang') {
            checkExact(answer, body);
            assert.equal(servedBy(answer).prefill, undefined, 'no prefill worker had a part in it');
          } else {
            checkRefused(answer, 502, 'engine_failed'); // SGLang's decode workers cannot compute a prompt
          }
        });
      }
    });
  }

  scenario('a request that an engine rejects is not repeated', async (s) => {
    const fleet = await startFleet(s, 'vllm', { prefill: 2, decode: 2 });
    for (const role of ['prefill', 'decode']) {
      for (const sim of fleet.of(role)) await sim.fault({ kind: 'status', status: 400, phase: role, count: 1 });
      const before = (await fleet.states()).map(({ requests }) => requests);
      checkPassedOn(await ask(fleet.router, chat('Mine to mend')), 400);
      const states = await fleet.settle();
      const legs = (one) => fleet.sims.reduce((sum, sim, i) => sum + (sim.role === one ? states[i].requests - before[i] : 0), 0);
      assert.equal(legs('prefill'), 1);
      if (role === 'decode') assert.ok(legs('decode') >= 1, 'and what was kept is released');
      for (const sim of fleet.sims) await sim.clearFaults();
    }
  });

  scenario('retries: 0 tells the first failure', async (s) => {
    const fleet = await startFleet(s, 'vllm', { prefill: 2, decode: 2 }, { retries: 0 });
    for (const sim of fleet.of('decode')) await sim.fault({ kind: 'status', status: 503, phase: 'decode', count: 1 });
    checkRefused(await ask(fleet.router, chat('Once')), 503, 'engine_overloaded');
    for (const sim of fleet.of('decode')) await sim.clearFaults();
    await fleet.settle(); // what the prefill kept was released by another leg
    assert.equal(await fleet.router.metric('baton_retries_total'), 0);
    assert.equal(await fleet.router.metric('baton_handoff_releases_total'), 1);
  });
});
