// SPDX-License-Identifier: Apache-2.0
// Adapters (LoRA) of a model: found at its workers, served only by those that have them, cached apart.
import assert from 'node:assert/strict';

import { Router, Sim } from './support/fleet.mjs';
import { fetchText, request } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const ids = (count, first) => Array.from({ length: count }, (_, i) => first + i);

const ask = async (router, model, prompt) => {
  const answer = await request(router.address, {
    path: '/v1/completions',
    body: JSON.stringify({ model, prompt, max_tokens: 2, ignore_eos: true }),
  });
  return { status: answer.status, ...JSON.parse(answer.text) };
};

const models = async (router) => JSON.parse(await fetchText(router.address, '/v1/models')).data;

/** Two prefill and two decode workers of an engine; the second of each has the adapter. */
async function fleetOf(s, engine) {
  const sims = [];
  for (const role of ['prefill', 'decode']) {
    sims.push(await Sim.telling(s, { engine, role }), await Sim.telling(s, { engine, role, lora: 'sql' }));
  }
  const workers = sims.map((sim) => ({ ...sim.worker(), kv_events: sim.feed, kv_replay: sim.replay, block_size: 16 }));
  const router = await Router.start(s, { models: [{ name: 'demo', policy: 'kv', workers }] });
  await router.allUp();
  return { router, sims };
}

for (const [engine, adapter] of [['vllm', 'sql'], ['sglang', 'demo:sql']]) {
  scenario(`${engine}: an adapter is served by those that have it`, async (s) => {
    const { router, sims } = await fleetOf(s, engine);
    const card = await until('the adapter is listed', async () => (await models(router)).find(({ id }) => id === adapter));
    assert.equal(card.parent, 'demo');
    for (let i = 1; i <= 6; ++i) {
      const answer = await ask(router, adapter, ids(64, 1000 * i));
      assert.equal(answer.status, 200, JSON.stringify(answer));
    }
    const requests = await Promise.all(sims.map(async (sim) => (await sim.state()).requests));
    assert.deepEqual(requests, [0, 6, 0, 6], 'prefill, prefill with it, decode, decode with it');
    assert.equal((await ask(router, 'demo', ids(64, 9000))).status, 200, 'the model itself is there, too');

    const unknown = await ask(router, 'poet', ids(64, 1000));
    assert.deepEqual([unknown.status, unknown.error.code], [404, 'model_not_found']);
    const route = await router.route({ model: adapter, prompt: ids(64, 1) });
    assert.deepEqual([route.prefill.worker, route.decode.worker], [sims[1].address, sims[3].address]);
  });
}

scenario('what an adapter has computed is not the model\'s', async (s) => {
  const { router, sims } = await fleetOf(s, 'vllm');
  await until('the adapter is listed', async () => (await models(router)).some(({ id }) => id === 'sql'));
  const prompt = ids(64, 500);
  assert.equal((await ask(router, 'sql', prompt)).status, 200);
  const match = async (model) => {
    const answer = await request(router.admin, { path: '/v1/index/match', body: JSON.stringify({ model, tokens: prompt }) });
    return JSON.parse(answer.text).matches.filter(({ source }) => source === 'events');
  };
  const held = await until('both have told of it', async () => {
    const matches = await match('sql');
    return matches.length === 2 && matches;
  });
  assert.deepEqual(held.map(({ worker }) => worker).sort(), [sims[1].address, sims[3].address].sort());
  assert.deepEqual(await match('demo'), [], 'prompts of the model find nothing of it');
});

scenario('an adapter whose only worker is away is refused, and served when it is back', async (s) => {
  const plain = await Sim.start(s, {});
  const having = await Sim.start(s, { lora: 'sql' });
  const router = await Router.start(s, { models: [{ name: 'demo', workers: [plain.worker(), having.worker()] }] });
  await until('the adapter is listed', async () => (await models(router)).some(({ id }) => id === 'sql'));
  await having.fault({ kind: 'refuse' });
  const refused = await until('it is known to be away', async () => {
    const answer = await ask(router, 'sql', ids(16, 1));
    return answer.error?.code === 'no_eligible_worker' && answer;
  });
  assert.equal(refused.status, 503);
  assert.match(refused.error.message, /no available aggregated worker has loaded the adapter 'sql'/);
  assert.equal((await ask(router, 'demo', ids(16, 1))).status, 200, 'the model itself is served');
  await having.clearFaults();
  await router.untilState(having, 'ready');
  assert.equal((await ask(router, 'sql', ids(16, 1))).status, 200);
});
