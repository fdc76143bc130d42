// SPDX-License-Identifier: Apache-2.0
// Every fault at every phase, streamed and not: the right answer or a clear error in time; never a hang, never a
// truncated success, and the router serves on.
import assert from 'node:assert/strict';

import { ENGINES, Fleet } from './support/fleet.mjs';
import { readAnswer, request } from './support/http.mjs';
import { inTime } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const CHAT = '/v1/chat/completions';
const TIMEOUTS = { connect: '1s', first_byte: '1500ms', idle: '1500ms' };
const ANSWERED_WITHIN = 20_000;
const GATEWAY = [500, 502, 503, 504];

/** Statuses a client may see when the fault strikes before its first byte. */
const FAULTS = {
  refuse: [{ kind: 'refuse' }, [502, 503]],
  reset: [{ kind: 'reset' }, [502, 503]],
  'status 400': [{ kind: 'status', status: 400 }, [400]],
  'status 429': [{ kind: 'status', status: 429 }, [429, 503]],
  'status 500': [{ kind: 'status', status: 500 }, [500, 502]],
  'status 503': [{ kind: 'status', status: 503 }, [503]],
  hang: [{ kind: 'hang' }, [504]],
  'hang in the stream': [{ kind: 'hang_stream', after_tokens: 3 }, [504]],
  'cut at once': [{ kind: 'cut', after_tokens: 0 }, GATEWAY],
  'cut in the middle': [{ kind: 'cut', after_tokens: 3 }, GATEWAY],
  slow: [{ kind: 'slow', delay_ms: 20 }, []],
  malformed: [{ kind: 'malformed', after_tokens: 3 }, GATEWAY],
  'error event': [{ kind: 'error_event', after_tokens: 3 }, GATEWAY],
};
const REPRESENTATIVE = ['refuse', 'status 400', 'status 503', 'hang in the stream', 'cut in the middle', 'error event'];

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

/** The answer to a request a fault struck: exact, or an error that says so. */
function checkStruck(answer, body, statuses, mayRecover) {
  assert.equal(answer.broken, undefined, 'no broken JSON reaches the client');
  if (mayRecover && !answer.error) return checkExact(answer, body);
  assert.ok(answer.error, `an error is told: ${answer.raw}`);
  assert.deepEqual(Object.keys(answer.error).sort(), ['code', 'message', 'param', 'type'], answer.raw);
  assert.ok(answer.error.message.length > 0 && typeof answer.error.type === 'string');
  if (answer.status !== 200) {
    assert.ok(statuses.includes(answer.status), `status ${answer.status}, expected one of ${statuses}: ${answer.raw}`);
    if ([429, 503].includes(answer.status)) assert.match(answer.headers['retry-after'] ?? '', /^\d+$/);
  } else {
    assert.ok(body.stream, 'an error that is not streamed has a status');
    assert.ok(!answer.done, 'a failed stream does not end with [DONE]');
    const { text } = expectedAnswer(body).choices[0];
    assert.ok(text.startsWith(answer.text), 'what was streamed before the error is right');
  }
  return undefined;
}

async function checkRouterServes(fleet, name) {
  const body = chat(`Clean after ${name}`, true);
  checkExact(await ask(fleet, body), body);
}

async function strike(fleet, sim, phase, stream, name) {
  const [fault, statuses] = FAULTS[name];
  const body = chat(`Struck by ${name} at ${phase} ${stream}`, stream);
  await sim.fault({ ...fault, phase });
  const answer = await ask(fleet, body).finally(() => sim.clearFaults());
  if (fault.kind === 'slow') checkExact(answer, body);
  else checkStruck(answer, body, statuses, phase === 'prefill');
  await checkRouterServes(fleet, name);
}

for (const engine of ENGINES) {
  const names = engine === 'vllm' ? Object.keys(FAULTS) : REPRESENTATIVE;
  for (const phase of ['prefill', 'decode', 'aggregated']) {
    scenario(`${engine}: faults at ${phase}`, async (s) => {
      const counts = phase === 'aggregated' ? { aggregated: 1 } : { prefill: 1, decode: 1 };
      // Half a hand-over that a fault leaves behind is given up after the lease.
      const fleet = await Fleet.start(s, { engine, counts, sim: { leaseMs: 5000 }, config: { timeouts: TIMEOUTS } });
      const [sim] = fleet.of(phase);
      for (const name of names) {
        for (const stream of [false, true]) {
          await s.step(`${name}, ${stream ? 'streamed' : 'whole'}`, () => strike(fleet, sim, phase, stream, name));
        }
      }
      await s.step('no request stays', async () => {
        for (const state of await fleet.idle()) assert.equal(state.running + state.waiting, 0);
      });
    });
  }
}

for (const phase of ['prefill', 'decode', 'aggregated']) {
  for (const stream of [false, true]) {
    scenario(`a worker that dies at ${phase}, ${stream ? 'streamed' : 'whole'}`, async (s) => {
      const counts = phase === 'aggregated' ? { aggregated: 1 } : { prefill: 1, decode: 1 };
      const fleet = await Fleet.start(s, { counts, config: { timeouts: TIMEOUTS } });
      const [sim] = fleet.of(phase);
      sim.process.expectedExit = undefined;
      await sim.fault({ kind: 'die', phase, after_tokens: phase === 'prefill' ? 0 : 3 });
      const body = chat('Last words', stream);
      checkStruck(await ask(fleet, body), body, GATEWAY, phase === 'prefill');
      await sim.process.ended();
      const again = await ask(fleet, chat('Anybody?', stream));
      checkStruck(again, chat('Anybody?', stream), GATEWAY, phase === 'prefill');
    });
  }
}

for (const engine of ENGINES) {
  scenario(`${engine}: with a worker of each role down the others serve`, async (s) => {
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
