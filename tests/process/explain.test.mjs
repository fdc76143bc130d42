// SPDX-License-Identifier: Apache-2.0
// "Why this worker?": POST /v1/route before a request, GET /v1/decisions after it, and `baton explain` for people.
import assert from 'node:assert/strict';

import { ask, completion, servedBy } from './support/ask.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { indexOf } from './support/kv_book.mjs';
import { runBaton, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const BLOCK = 4;
// Each letter is a token in the tiny model, but for the two that make a greeting.
const BEGINNING = 'All of it is known to whoever has computed it before. ';

async function decisions(router, path = '') {
  const answer = await request(router.admin, { method: 'GET', path: `/v1/decisions${path}` });
  return { status: answer.status, ...JSON.parse(answer.text) };
}

/** The decision about a request that has ended; its outcome is written a moment after the client has its last byte. */
const decided = (router, id) =>
  until(`the outcome of ${id}`, async () => {
    const told = await decisions(router, `/${id}`);
    return told.outcome && told;
  });

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is ${b}`);
const byWorker = ({ candidates }) => Object.fromEntries(candidates.map(({ worker, ...rest }) => [worker, rest]));

async function kvFleet(s, counts, config = {}) {
  const tokenizer = await writeTinyModel(s);
  const roles = Object.entries(counts).flatMap(([role, count]) => Array(count).fill(role));
  const fleet = new Fleet();
  fleet.sims = await Promise.all(roles.map((role) => Sim.telling(s, { role, tokenizer, blockSize: BLOCK })));
  const workers = fleet.sims.map((sim) => ({ ...sim.worker(), block_size: BLOCK, kv_events: sim.feed, kv_replay: sim.replay }));
  // What is cached is what events say, and nothing else: then a prediction can be compared to the digit.
  fleet.router = await Router.start(s, {
    kv_index: { prediction_ttl: '0s' },
    trust_routing_headers: true,
    models: [{ name: 'demo', policy: 'kv', tokenizer, workers }],
    ...config,
  });
  await fleet.router.allUp();
  return fleet;
}

scenario('a prompt goes where most of it is, and every command agrees why', async (s) => {
  const fleet = await kvFleet(s, { prefill: 3, decode: 2 });
  const { router } = fleet;
  const body = completion(`${BEGINNING}What follows is new.`);
  let warm;
  let route;

  await s.step('at first no worker has anything of it', async () => {
    const cold = await router.route(body);
    assert.equal(cold.status, 200);
    assert.equal(cold.prompt_tokens, body.prompt.length + 1, 'one token each, and <s>');
    assert.equal(cold.prefill.policy, 'kv');
    assert.equal(cold.prefill.candidates.length, 3);
    for (const one of cold.prefill.candidates) {
      assert.deepEqual(one.overlap, { device: 0, host: 0, disk: 0 });
      assert.equal(one.cached_tokens, 0);
      assert.equal(one.new_tokens, cold.prompt_tokens);
    }
  });
  await s.step('asking has left nothing behind', async () => {
    await fleet.settle();
    assert.equal((await decisions(router)).remembered, 0);
    for (const one of (await router.route(body)).prefill.candidates) assert.equal(one.cached_tokens, 0);
  });
  await s.step('a request with the same beginning warms one worker', async () => {
    const answer = await ask(router, completion(`${BEGINNING}One came first.`));
    assert.equal(answer.status, 200, answer.raw);
    warm = servedBy(answer).prefill;
    await fleet.settle();
    await until('its events have come, and are believed', async () => {
      const { caches } = await indexOf(router);
      return caches.some(({ worker, source, blocks }) => worker === warm && source === 'events' && blocks.device > 0);
    });
    route = await router.route(body);
  });
  await s.step('it would get the next one, for what it has', async () => {
    assert.equal(route.prefill.worker, warm);
    assert.equal(route.prefill.by, 'policy');
    const most = Math.max(...route.prefill.candidates.map(({ overlap }) => overlap.device));
    const chosen = route.prefill.candidates[route.prefill.picked];
    assert.equal(chosen.worker, warm);
    assert.equal(chosen.overlap.device, most);
    assert.equal(most, Math.floor((BEGINNING.length + 1) / BLOCK), 'whole blocks of the common beginning');
    for (const { cost, score, cached_tokens: cached, overlap, block_size: size } of route.prefill.candidates) {
      near(cost.total, (cost.prefill + cost.decode_blocks + cost.requests) * cost.preference);
      near(cost.prefill, Math.max(0, cost.raw_prefill_blocks - cost.credit));
      near(cost.raw_prefill_blocks, route.prompt_tokens / BLOCK);
      near(cost.credit, overlap.device);
      assert.equal(score, cost.total);
      assert.equal(size, BLOCK);
      assert.equal(cached, overlap.device * BLOCK);
    }
    assert.equal(chosen.score, Math.min(...route.prefill.candidates.map(({ score }) => score)));
    for (const one of route.decode.candidates) {
      assert.equal(one.new_tokens, 0, 'it computes nothing');
      assert.equal(one.cost.prefill, 0);
    }
  });
  await s.step('and gets it, for the same reasons', async () => {
    const answer = await ask(router, body, { 'x-request-id': 'explained' });
    assert.equal(answer.status, 200, answer.raw);
    assert.equal(servedBy(answer).prefill, warm);
    const told = await decided(router, 'explained');
    assert.equal(told.model, 'demo');
    assert.equal(told.prompt_tokens, route.prompt_tokens);
    assert.deepEqual(told.decisions.map(({ part, attempt }) => [part, attempt]), [['prefill', 1], ['decode', 1]]);
    const [prefill, decode] = told.decisions.map(({ choice }) => choice);
    assert.equal(prefill.worker, warm);
    assert.equal(prefill.candidates[prefill.picked].worker, warm);
    assert.deepEqual(byWorker(prefill), byWorker(route.prefill), 'candidate by candidate, term by term');
    assert.deepEqual(byWorker(decode), byWorker(route.decode));
    assert.equal(decode.worker, servedBy(answer).decode);
    assert.deepEqual(told.waited, { policy_class: null, ahead: 0, queued_ms: 0, followed_ms: 0, refused: null });
    assert.equal(told.outcome.status, 200);
    assert.equal(told.outcome.error, null);
    assert.equal(told.outcome.retries, 0);
    assert.equal(told.outcome.prompt_tokens, route.prompt_tokens);
    assert.equal(told.outcome.cached_tokens, byWorker(prefill)[warm].cached_tokens, 'as the engine says');
  });
  await s.step('baton explain prints it', async () => {
    const at = ['--admin', `http://${router.admin}`];
    const { stdout } = await runBaton(s, ['explain', 'explained', ...at]);
    assert.match(stdout, /^Request explained: model demo, \d+ tokens/);
    assert.match(stdout, new RegExp(`\nPrefill: ${warm} \\(policy kv\\)\n`));
    assert.match(stdout, new RegExp(`\n\\* +${warm} +${byWorker(route.prefill)[warm].cached_tokens} `));
    for (const sim of fleet.sims) assert.ok(stdout.includes(` ${sim.address} `), `${sim.address} in ${stdout}`);
    const difference = Math.min(
      ...route.prefill.candidates.filter(({ worker }) => worker !== warm).map(({ score }) => score),
    ) - byWorker(route.prefill)[warm].score;
    assert.ok(stdout.includes(`  ${difference} more\n`), stdout);
    assert.match(stdout, /\nOutcome: 200, 0 retries/);
    const json = JSON.parse((await runBaton(s, ['explain', 'explained', '--json', ...at])).stdout);
    assert.equal(json.request_id, 'explained');
    const list = (await runBaton(s, ['explain', ...at])).stdout.trim().split('\n');
    assert.equal(list[0], 'explained');
    assert.equal(list.length, 2);
    const unknown = await runBaton(s, ['explain', 'a/b', ...at], { expect: 1 });
    assert.match(unknown.stderr, /no request with the id a\/b is remembered; 2 are, at most 1000/);
    assert.match((await runBaton(s, ['explain', '--help'])).stdout, /x-request-id/);
  });
  await s.step('a request may say that what is cached does not count', async () => {
    const nvext = { router_config_override: { overlap_score_credit: 0, prefill_load_scale: 2 } };
    const { prefill } = await router.route({ ...body, nvext });
    for (const { cost } of prefill.candidates) {
      assert.equal(cost.credit, 0);
      near(cost.prefill, 2 * cost.raw_prefill_blocks);
    }
    const bad = await router.route({ ...body, nvext: { router: { router_temperature: -1 } } });
    assert.equal(bad.status, 400);
    assert.match(bad.error.message, /nvext\.router\.router_temperature/);
  });
  await s.step('of a request for several choices each is told of', async () => {
    const answer = await ask(router, { ...body, n: 2 }, { 'x-request-id': 'several' });
    assert.equal(answer.status, 200, answer.raw);
    for (const id of ['several-0', 'several-1']) {
      const told = await decided(router, id);
      assert.equal(told.outcome.status, 200);
      assert.equal(told.prompt_tokens, route.prompt_tokens);
    }
    const whole = await decisions(router, '/several');
    assert.equal(whole.status, 404);
    assert.match(whole.error.message, /ask for several-0/);
  });
  await fleet.settle();
});

scenario('what failed before is told, too', async (s) => {
  const fleet = await kvFleet(s, { aggregated: 2 });
  const { router } = fleet;
  const [first] = fleet.sims;
  await first.fault({ kind: 'status', status: 500, count: 1 });
  const pinned = await router.route(completion('x'), { 'x-baton-worker-instance-id': first.address });
  assert.equal(pinned.decode.by, 'name');
  // New prompts cost the same everywhere: sooner or later one goes to the worker that fails.
  let sent = 0;
  const told = await until('a request that was repeated', async () => {
    const answer = await ask(router, completion(`${++sent} is a prompt of its own`));
    assert.equal(answer.status, 200, answer.raw);
    const one = await decided(router, answer.headers['x-request-id']);
    return one.outcome.retries > 0 && one;
  });
  assert.deepEqual(told.decisions.map(({ part, attempt }) => [part, attempt]), [['both', 1], ['both', 2]]);
  const [before, after] = told.decisions.map(({ choice }) => choice);
  assert.equal(before.worker, first.address);
  assert.notEqual(after.worker, first.address);
  assert.equal(typeof byWorker(after)[first.address].why_not, 'string');
  const { stdout } = await runBaton(s, ['explain', told.request_id, '--admin', router.admin]);
  assert.match(stdout, /attempt 2\)/);
  assert.match(stdout, /1 retry/);
  await fleet.settle();
});

scenario('a client with a key of its own does not wait behind a flood', async (s) => {
  const keys = ['key-of-a-flood', 'key-of-somebody'];
  const fleet = await Fleet.start(s, {
    counts: { aggregated: 1 },
    sim: { prefillTokensPerSecond: 1000, decodeMs: 0 },
    model: { queue: { busy_tokens: 0 } },
    config: { api_keys: keys },
  });
  const [sim] = fleet.sims;
  const send = (name, key, words = 1) =>
    ask(fleet.router, completion(`${name} ${'and so on '.repeat(words)}`, { max_tokens: 2 }), { authorization: `Bearer ${key}` });
  const waiting = (n) => until(`${n} wait`, async () => (await fleet.router.metric('baton_queue_requests')) === n);

  const answers = [send('first', keys[0], 1000)]; // takes six seconds, in which the others come
  await until('it is there', async () => (await sim.legs()).length === 1);
  for (let i = 0; i < 3; ++i) answers.push(send(`flood-${i}`, keys[0]));
  await waiting(3);
  answers.push(send('other', keys[1]));
  await waiting(4);
  for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200, answer.raw);
  const order = (await sim.legs()).map(({ body }) => JSON.parse(body).prompt.split(' ')[0]);
  assert.equal(order[0], 'first');
  assert.ok(order.indexOf('other') <= 2, `one of the flood at most goes before it: ${order}`);
  for (const { body } of await sim.legs()) assert.equal(JSON.parse(body).cache_salt, undefined, 'keys set no caches apart');
  const everything = fleet.router.process.stderr + JSON.stringify(await fleet.router.metrics());
  for (const key of keys) assert.ok(!everything.includes(key), 'no key is told');
  await fleet.settle();
});
