// SPDX-License-Identifier: Apache-2.0
// `disaggregation: auto | required | off`, and the life of a model's prefill workers: pending, active, unavailable.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { ask, chat, checkExact, checkRefused, servedBy } from './support/ask.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { freePort } from './support/ports.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

/** A router whose prefill worker is configured but not there yet, and its decode worker. */
async function startWithoutPrefill(s, model, engine = 'vllm') {
  const port = await freePort();
  const decode = await Sim.start(s, { engine, role: 'decode' });
  const prefill = { url: `http://127.0.0.1:${port}`, engine, role: 'prefill' };
  const workers = [prefill, decode.worker()];
  const router = await Router.start(s, { models: [{ name: 'demo', workers, ...model }] });
  const address = `127.0.0.1:${port}`;
  // Until then it might be asked: a worker not heard of yet is better than none.
  await until('the router knows that it is not there', async () => (await router.workerAt({ address }))?.state === 'unreachable');
  const startPrefill = () => Sim.start(s, { engine, role: 'prefill', port });
  return { router, decode, startPrefill, address };
}

async function kill(sim) {
  sim.process.expectedExit = undefined;
  sim.process.signal('SIGKILL');
  await sim.process.ended();
}

const stateOf = (router) => router.metric('baton_prefill_state', { model: 'demo' });
const transitionsTo = (router, to) => router.metric('baton_prefill_transitions_total', { model: 'demo', to });
const lifeOf = (router) => router.logLines().filter(({ event }) => /^prefill_/.test(event)).map(({ event }) => event);

/** Asks until the answer satisfies `good`; the router learns of a worker's death by its requests. */
async function askUntil(router, good) {
  return until('the answer that was waited for', async () => {
    const body = chat('Is it so by now?');
    const answer = await ask(router, body);
    return good(answer) && [answer, body];
  });
}

describe('disaggregation', { concurrency: 3 }, () => {
  scenario('required: pending, active, unavailable, active again', async (s) => {
    const { router, decode, startPrefill, address } = await startWithoutPrefill(s, { disaggregation: 'required' });
    await s.step('pending: nothing is served, and it is told why', async () => {
      for (const stream of [false, true]) {
        const message = checkRefused(await ask(router, chat('Too early', { stream })), 503, 'prefill_unavailable');
        assert.match(message, /prefill/);
      }
      const ready = await request(router.admin, { method: 'GET', path: '/ready' });
      assert.equal(ready.status, 503);
      const { models } = JSON.parse(ready.text);
      assert.equal(models.demo.ready, false);
      assert.match(models.demo.reason, /every prefill worker is down|no prefill worker has been heard of/);
      assert.notEqual(await stateOf(router), 1);
      assert.equal((await decode.state()).requests, 0, 'decode was asked nothing');
      assert.deepEqual(lifeOf(router), []);
    });
    let prefill;
    await s.step('active once it has come', async () => {
      prefill = await startPrefill();
      await router.ready();
      const body = chat('Now then');
      const answer = await ask(router, body);
      checkExact(answer, body);
      assert.equal(servedBy(answer).prefill, address);
      assert.equal(await stateOf(router), 1);
      assert.equal(await transitionsTo(router, 'active'), 1);
      assert.deepEqual(lifeOf(router), ['prefill_activated']);
    });
    await s.step('unavailable when it has died', async () => {
      await kill(prefill);
      const [answer] = await askUntil(router, ({ error }) => error?.code === 'prefill_unavailable');
      checkRefused(answer, 503, 'prefill_unavailable');
      assert.equal(await stateOf(router), 2);
      assert.equal(await transitionsTo(router, 'unavailable'), 1);
      assert.match((await router.readiness()).models.demo.reason, /every prefill worker is down/);
      assert.deepEqual(lifeOf(router), ['prefill_activated', 'prefill_unavailable']);
      assert.equal((await router.logged('prefill_unavailable'))[0].level, 'warning');
    });
    await s.step('active again when it is back', async () => {
      await startPrefill();
      await router.ready();
      const body = chat('And again');
      checkExact(await ask(router, body), body);
      assert.equal(await stateOf(router), 1);
      assert.equal(await transitionsTo(router, 'active'), 2);
      assert.deepEqual(lifeOf(router), ['prefill_activated', 'prefill_unavailable', 'prefill_reactivated']);
      for (const line of router.logLines().filter(({ event }) => /^prefill_/.test(event))) assert.equal(line.model, 'demo');
    });
  });

  scenario('required: not ready without a decode worker, which may come back', async (s) => {
    const fleet = await Fleet.start(s, { model: { disaggregation: 'required' } });
    const { router } = fleet;
    await router.ready();
    const [decode] = fleet.of('decode');
    await kill(decode);
    checkRefused(await ask(router, chat('Nobody to answer')), 502, 'engine_unreachable');
    const { ready, models } = await router.readiness();
    assert.equal(ready, false);
    assert.match(models.demo.reason, /no decode worker is up/);
    await Sim.again(s, () => Sim.start(s, { role: 'decode', port: decode.address.split(':')[1] }));
    await router.ready();
    const body = chat('Somebody again');
    checkExact(await ask(router, body), body);
    await until('nothing is in flight', async () => (await router.inFlight()) === 0);
  });

  for (const engine of ['vllm', 'trtllm']) {
    scenario(`${engine}, auto: served by decode workers alone while no prefill worker is there`, async (s) => {
      const { router, decode, startPrefill, address } = await startWithoutPrefill(s, {}, engine);
      await s.step('before it has come', async () => {
        const [answer, body] = await askUntil(router, ({ status }) => status === 200);
        checkExact(answer, body);
        assert.deepEqual(servedBy(answer), { prefill: undefined, decode: decode.address });
        assert.equal((await decode.legs()).at(-1).phase, 'aggregated');
        assert.equal((await router.readiness()).ready, true);
      });
      let prefill;
      await s.step('handed off once it is there', async () => {
        prefill = await startPrefill();
        await router.allUp();
        const body = chat('By two', { stream: true });
        const answer = await ask(router, body);
        checkExact(answer, body);
        assert.deepEqual(servedBy(answer), { prefill: address, decode: decode.address });
      });
      await s.step('passed by when it has died', async () => {
        await kill(prefill);
        const [answer, body] = await askUntil(router, (one) => one.status === 200 && !servedBy(one).prefill);
        checkExact(answer, body);
        assert.equal(await stateOf(router), 2);
        await until('nothing is in flight', async () => (await router.inFlight()) === 0);
      });
    });
  }

  scenario('sglang, auto: a decode worker that cannot prefill is not asked to', async (s) => {
    const { router, decode, startPrefill } = await startWithoutPrefill(s, {}, 'sglang');
    const [early] = await askUntil(router, ({ error }) => error);
    assert.ok([502, 503].includes(early.status), early.raw);
    assert.equal((await decode.legs()).filter(({ phase }) => phase === 'aggregated').length, 0);
    await startPrefill();
    const [answer, body] = await askUntil(router, ({ status }) => status === 200);
    checkExact(answer, body);
  });

  scenario('off: prefill workers may stand there and are not used', async (s) => {
    const fleet = await Fleet.start(s, { model: { disaggregation: 'off' } });
    for (const stream of [false, true]) {
      const body = chat('One is enough', { stream });
      const answer = await ask(fleet.router, body);
      checkExact(answer, body);
      assert.deepEqual(servedBy(answer), { prefill: undefined, decode: fleet.of('decode')[0].address });
    }
    assert.equal((await fleet.of('prefill')[0].state()).requests, 0);
    await fleet.settle();
  });
});
