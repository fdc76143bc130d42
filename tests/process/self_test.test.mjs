// SPDX-License-Identifier: Apache-2.0
// The hand-off that a worker must pass before it serves.
import assert from 'node:assert/strict';

import { ask, chat, checkExact, servedBy } from './support/ask.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const CONFIG = { probe: { self_test: true }, health: { interval: '500ms' } };

const workersOf = async (router) => JSON.parse((await request(router.admin, { method: 'GET', path: '/workers' })).text).workers;

for (const engine of ['vllm', 'sglang', 'trtllm']) {
  scenario(`${engine}: a pair is tested before it serves`, async (s) => {
    const fleet = await Fleet.start(s, { engine, config: CONFIG });
    await fleet.router.allUp();
    for (const sim of fleet.sims) assert.ok((await sim.legs()).length > 0, `${sim.role} was asked before any client came`);
    const body = chat('After the test');
    const answer = await ask(fleet.router, body);
    checkExact(answer, body);
    assert.ok(servedBy(answer).prefill);
    await fleet.settle();
  });
}

scenario('a pair that cannot hand over is misconfigured, and serves once it can', async (s) => {
  const [prefill, decode] = await Promise.all(['prefill', 'decode'].map((role) => Sim.start(s, { role })));
  await prefill.fault({ kind: 'status', status: 500, phase: 'prefill' });
  const workers = [prefill.worker(), decode.worker()];
  const router = await Router.start(s, { ...CONFIG, models: [{ name: 'demo', workers }] });
  const struck = await until('a worker failed the test', async () => (await workersOf(router)).find(({ state }) => state === 'misconfigured'));
  assert.match(struck.reason, /the self-test failed: .*500/);
  await prefill.clearFaults();
  await router.allUp();
  const body = chat('Mended');
  const answer = await ask(router, body);
  checkExact(answer, body);
  assert.ok(servedBy(answer).prefill);
});

scenario('a prefill worker without a connector is misconfigured, and prompts are computed once', async (s) => {
  for (const probe of [{ self_test: true }, { self_test: false }, { enabled: false }]) {
    await s.step(JSON.stringify(probe), async () => {
      const plain = await Sim.start(s, { role: 'aggregated' });
      const decode = await Sim.start(s, { role: 'decode' });
      const workers = [{ ...plain.worker(), role: 'prefill' }, decode.worker()];
      const router = await Router.start(s, { probe, health: { interval: '60s' }, models: [{ name: 'demo', workers }] });
      await router.untilState(decode, 'ready');
      const first = chat('Who computes this?');
      checkExact(await ask(router, first), first);
      const { reason } = await router.untilState(plain, 'misconfigured');
      assert.match(reason, /NIXL connector.*--kv-transfer-config/);
      const { requests } = await plain.state();
      const body = chat('And this?');
      const answer = await ask(router, body);
      checkExact(answer, body);
      assert.equal(servedBy(answer).prefill, undefined);
      assert.equal((await plain.state()).requests, requests, 'it gets no further request');
    });
  }
});
