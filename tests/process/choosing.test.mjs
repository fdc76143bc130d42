// SPDX-License-Identifier: Apache-2.0
// Who gets a prompt by what caches hold, who waits when all are busy, and who is told to come again.
import assert from 'node:assert/strict';

import { Fleet } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const COMPLETIONS = '/v1/completions';

/** `count` token ids, other ones for another `seed`. */
const ids = (count, seed) => Array.from({ length: count }, (_, i) => 1000 + ((seed * 7919 + i * 31) % 30_000));

const complete = (fleet, prompt, headers = {}) =>
  request(fleet.router.address, {
    path: COMPLETIONS,
    headers,
    body: JSON.stringify({ model: 'demo', prompt, max_tokens: 2, ignore_eos: true }),
  });

const requests = (fleet, role) => Promise.all(fleet.of(role).map(async (sim) => (await sim.state()).requests));

for (const policy of ['kv', 'ttft']) {
  scenario(`${policy} brings a prompt back to the worker that has it`, async (s) => {
    const fleet = await Fleet.start(s, { counts: { prefill: 3, decode: 2 }, model: { policy } });
    for (let prompt = 1; prompt <= 3; ++prompt) {
      const tokens = ids(2000, prompt);
      const before = await requests(fleet, 'prefill');
      for (let turn = 0; turn < 4; ++turn) assert.equal((await complete(fleet, tokens)).status, 200);
      const after = await requests(fleet, 'prefill');
      // Without events Baton goes by where it sent the prompt.
      assert.deepEqual(after.map((count, i) => count - before[i]).sort(), [0, 0, 4], `prompt ${prompt}`);
    }
    await fleet.settle();
  });
}

for (const policy of ['load_aware', 'kv', 'ttft']) {
  scenario(`${policy} spreads prompts that no worker has`, async (s) => {
    const fleet = await Fleet.start(s, {
      counts: { prefill: 2, decode: 2 },
      sim: { prefillTokensPerSecond: 20_000 },
      model: { policy },
    });
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => complete(fleet, ids(1000, i + 1))));
    for (const answer of answers) assert.equal(answer.status, 200);
    for (const role of ['prefill', 'decode']) {
      for (const count of await requests(fleet, role)) assert.ok(count >= 1, `${role}: ${await requests(fleet, role)}`);
    }
    await fleet.settle();
    assert.equal(await fleet.router.metric('baton_worker_prefill_tokens'), 0);
    assert.equal(await fleet.router.metric('baton_worker_decode_blocks'), 0);
  });
}

scenario('whole answers share a worker', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { aggregated: 1 },
    sim: { decodeMs: 20 },
    model: { policy: 'kv', queue: { busy_tokens: 0 } },
  });
  const send = (seed) =>
    request(fleet.router.address, {
      path: COMPLETIONS,
      body: JSON.stringify({ model: 'demo', prompt: ids(1200, seed), max_tokens: 300, ignore_eos: true }),
    });
  const [sim] = fleet.of('aggregated');
  const loops = Array.from({ length: 6 }, async (_, client) => {
    for (let turn = 0; turn < 2; ++turn) assert.equal((await send(100 + 10 * client + turn)).status, 200);
  });
  await until('all are on the worker at once', async () => (await sim.state()).running === 6);
  await Promise.all(loops);
  await fleet.settle();
  assert.equal(await fleet.router.metric('baton_worker_prefill_tokens'), 0);
});

scenario('a full queue refuses with 429, and what waits is served', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 1, decode: 1 },
    sim: { prefillTokensPerSecond: 2000 },
    model: { policy: 'kv', queue: { busy_tokens: 0, requests_per_worker: 3 } },
  });
  const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => complete(fleet, ids(400, i + 1))));
  const served = answers.filter((answer) => answer.status === 200);
  const refused = answers.filter((answer) => answer.status === 429);
  assert.equal(served.length + refused.length, 12);
  assert.ok(served.length >= 4 && refused.length >= 1, `${served.length} served, ${refused.length} refused`);
  for (const answer of refused) {
    assert.ok(Number(answer.headers['retry-after']) >= 1);
    const { error } = JSON.parse(answer.text);
    assert.equal(error.code, 'queue_full');
    assert.equal(error.details.limit_kind, 'requests');
    assert.equal(error.details.limit, 3);
  }
  await fleet.settle();
  assert.equal(await fleet.router.metric('baton_queue_requests'), 0);
  assert.equal((await complete(fleet, ids(400, 99))).status, 200);
});

scenario('who would wait too long is refused at once, and served when it comes again', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 1, decode: 1 },
    sim: { prefillTokensPerSecond: 4000 },
    model: { policy: 'ttft', queue: { longest_wait: '50ms' } },
  });
  // At first the speed of the queue is unknown, and no request is refused.
  let refused;
  let seed = 0;
  const loops = Array.from({ length: 40 }, async () => {
    for (let turn = 0; turn < 100 && !refused; ++turn) {
      const answer = await complete(fleet, ids(100, ++seed));
      if (answer.status === 200) continue;
      refused ??= answer;
      assert.equal(answer.status, 429);
    }
  });
  await Promise.all(loops);
  assert.ok(refused, 'a request was refused');
  assert.ok(Number(refused.headers['retry-after']) >= 1);
  const { error } = JSON.parse(refused.text);
  assert.equal(error.code, 'queue_full');
  assert.equal(error.details.limit_kind, 'wait_ms');
  assert.ok(error.details.current >= error.details.limit);
  await fleet.settle();
  assert.equal((await complete(fleet, ids(100, ++seed))).status, 200);
});

scenario('a request that may not wait is refused, and one whose client leaves is gone', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 1, decode: 1 },
    sim: { prefillTokensPerSecond: 1000 },
    model: { policy: 'kv', queue: { busy_tokens: 0 } },
  });
  const running = complete(fleet, ids(4000, 1));
  await until('the first is being computed', async () => (await fleet.router.metric('baton_worker_prefill_tokens')) > 0);
  const failFast = await complete(fleet, ids(100, 2), { 'x-baton-queue': 'fail-fast' });
  assert.equal(failFast.status, 503);
  assert.equal(JSON.parse(failFast.text).error.code, 'workers_busy');
  const bounded = await complete(fleet, ids(100, 3), { 'x-baton-queue': '50ms' });
  assert.equal(bounded.status, 503);
  assert.equal(JSON.parse(bounded.text).error.code, 'queue_timeout');
  const path = `/v1/decisions/${bounded.headers['x-request-id']}`;
  const { waited } = JSON.parse((await request(fleet.router.admin, { method: 'GET', path })).text);
  assert.equal(waited.policy_class, 'default');
  assert.ok(waited.queued_ms > 0);
  assert.match(waited.refused, /patience/);
  const wrong = await complete(fleet, ids(100, 3), { 'x-baton-queue': 'soon' });
  assert.equal(wrong.status, 400);
  assert.equal((await running).status, 200);
  await fleet.settle();
});

for (const stepMs of [0.5, 100]) scenario(`a stampede on one cold prompt is computed once, in steps of ${stepMs} ms and more`, async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 2, decode: 1 },
    sim: { prefillTokensPerSecond: 4000, decodeMs: stepMs },
    model: { policy: 'ttft' },
  });
  // It learns first how fast its workers are.
  for (let i = 1; i <= 8; ++i) assert.equal((await complete(fleet, ids(200 * i, 100 + i))).status, 200);
  const tokens = ids(4000, 1);
  const answers = await Promise.all(Array.from({ length: 8 }, () => complete(fleet, tokens)));
  const cached = answers.map((answer) => JSON.parse(answer.text).usage.prompt_tokens_details?.cached_tokens ?? 0);
  assert.equal(cached.filter((count) => count < 2000).length, 1, `cached: ${cached}`);
  await fleet.settle();
});

scenario('a busy prefill worker leaves a prompt to the decode worker, and the answer says so', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 1, decode: 1 },
    sim: { prefillTokensPerSecond: 1000 },
    model: { policy: 'kv', conditional_prefill: { policy: 'prefill_load', prefill_busy_threshold: 0 } },
  });
  const running = complete(fleet, ids(5000, 1));
  await until('the first is being computed', async () => (await fleet.router.metric('baton_worker_prefill_tokens')) > 0);
  const bypassing = await complete(fleet, ids(100, 2));
  assert.equal(bypassing.status, 200);
  assert.equal(bypassing.headers['x-bypass-remote-prefill'], 'true');
  const handedOff = await running;
  assert.equal(handedOff.status, 200);
  assert.equal(handedOff.headers['x-bypass-remote-prefill'], undefined);
  assert.deepEqual(await requests(fleet, 'prefill'), [1]);
  await fleet.settle();
});

scenario('who asks for a route is told whether the request would wait', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 1, decode: 1 },
    sim: { prefillTokensPerSecond: 1000 },
    model: { policy: 'kv', queue: { busy_tokens: 0 } },
  });
  const route = () => fleet.router.route({ model: 'demo', prompt: ids(100, 2), max_tokens: 2 });
  assert.equal((await route()).waits, false);
  const running = complete(fleet, ids(5000, 1));
  await until('the first is being computed', async () => (await fleet.router.metric('baton_worker_prefill_tokens')) > 0);
  const busy = await route();
  assert.equal(busy.waits, true);
  assert.equal(busy.waits_for.kind, 'workers');
  assert.equal((await running).status, 200);
  await fleet.settle();
});
