// SPDX-License-Identifier: Apache-2.0
// Requests that end the process of the worker that serves them: two workers at most, and only those. Requests that
// merely were there when a worker ended are served by another. Token ids that no model has reach no worker.
import assert from 'node:assert/strict';

import { ask, chat, checkExact, checkRefused, completion } from './support/ask.mjs';
import { Fleet } from './support/fleet.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const CONFIG = { threads: 2, timeouts: { connect: '1s', first_byte: '20s', idle: '20s' } };
const POISON = 'poison pill';

const poisoned = (router) => router.metric('baton_poison_requests_total', { model: 'demo' });
const ended = (sims) => sims.filter(({ process }) => process.exited);

async function startFleet(s, counts, options = {}) {
  const fleet = await Fleet.start(s, { engine: 'vllm', counts, config: CONFIG, model: { retries: 5 }, ...options });
  await fleet.router.allUp();
  return fleet;
}

async function dieOfPoison(sims, phase) {
  for (const sim of sims) {
    sim.process.expectedExit = undefined;
    await sim.fault({ kind: 'die', phase, match: POISON });
  }
}

for (const stream of [false, true]) {
  scenario(`a request that ends its worker is offered to one other, stream ${stream}`, async (s) => {
    const fleet = await startFleet(s, { aggregated: 4 });
    await dieOfPoison(fleet.sims, 'aggregated');
    const body = chat(POISON, { stream });
    const first = await ask(fleet.router, body, { 'X-Request-Id': 'pill-1' });
    assert.match(checkRefused(first, 502, 'poison_request'), /^2 workers ended/);
    assert.equal(first.headers['x-should-retry'], 'false');
    await until('two workers have ended', () => ended(fleet.sims).length === 2);
    assert.equal(await poisoned(fleet.router), 1);
    const line = (await fleet.router.logged('poison_request')).at(-1);
    assert.equal(line.id, 'pill-1');
    assert.equal(line.level, 'warning');

    await s.step('its client repeats it, and no worker sees it', async () => {
      checkRefused(await ask(fleet.router, body), 502, 'poison_request');
      assert.equal(ended(fleet.sims).length, 2);
      assert.equal(await poisoned(fleet.router), 2);
    });
    await s.step('all others are served', async () => {
      for (let i = 0; i < 6; ++i) {
        const other = chat(`bread ${i}`, { stream });
        checkExact(await ask(fleet.router, other), other);
      }
    });
  });
}

scenario('whichever leg ends its worker', async (s) => {
  for (const phase of ['prefill', 'decode']) {
    await s.step(phase, async () => {
      const fleet = await startFleet(s, { prefill: 3, decode: 3 }, { model: { retries: 5, disaggregation: 'required' } });
      const sims = fleet.of(phase);
      await dieOfPoison(sims, phase);
      checkRefused(await ask(fleet.router, chat(`${POISON} ${phase}`)), 502, 'poison_request');
      await until('two workers have ended', () => ended(sims).length === 2);
      const other = chat('bread');
      checkExact(await ask(fleet.router, other), other);
      assert.equal(ended(fleet.sims).length, 2);
    });
  }
});

scenario('requests that lose their worker by no fault of theirs are served by another', async (s) => {
  const fleet = await startFleet(s, { aggregated: 2 });
  const [victim] = fleet.sims;
  await victim.fault({ kind: 'hang' });
  const bodies = Array.from({ length: 24 }, (_, i) => chat(`Still waiting, ${i}`, { stream: i % 2 === 0 }));
  const answers = bodies.map((body) => ask(fleet.router, body));
  await until('some wait for a first token', async () => (await victim.state()).requests >= 8);
  victim.process.expectedExit = undefined;
  victim.process.signal('SIGKILL');
  for (const [i, answer] of (await Promise.all(answers)).entries()) checkExact(answer, bodies[i]);
  assert.equal(await poisoned(fleet.router), 0);
  // Nor is any of them suspect for ever.
  for (const body of bodies.slice(0, 4)) checkExact(await ask(fleet.router, body), body);
});

scenario('token ids that the model does not have reach no worker', async (s) => {
  const fleet = await startFleet(s, { aggregated: 2 }, { engine: 'sglang' });
  const bad = {
    'a chat of ids': [chat('Hello', { input_ids: [1, 999999999] }), 'input_ids[1]', '999999999', '262143'],
    'a prompt of ids': [completion([262144]), 'prompt[0]', '262144', '262143'],
    'lists of ids': [completion([[1], [2, -1]]), 'prompt[1][1]', '-1', '262143'],
    'no integer': [completion([1, 2.5]), 'prompt[1]', '2.5', '262143'],
    'an id of 32 bits': [completion([4294967296]), 'prompt[0]', '4294967296', '262143'],
  };
  for (const [name, [body, param, id, limit]] of Object.entries(bad)) {
    await s.step(name, async () => {
      const answer = await ask(fleet.router, body);
      const message = checkRefused(answer, 400, 'invalid_request');
      assert.ok(message.includes(id) && message.includes(limit), message);
      assert.equal(answer.error.param, param);
    });
  }
  for (const { requests } of await fleet.states()) assert.equal(requests, 0);
  const good = completion([262143, 1]);
  assert.equal((await ask(fleet.router, good)).status, 200);
});
