// SPDX-License-Identifier: Apache-2.0
// Workers that are added, changed, drained and removed while the router serves: by its admin API and by `baton workers`.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';

import { ask, chat, checkExact, servedBy, streamed } from './support/ask.mjs';
import { Call, readStream } from './support/call.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { Process, runBaton, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

/** One call of the admin address: {status, headers, json}. */
async function admin(router, method, path, { body, headers } = {}) {
  const answer = await request(router.admin, { method, path, body: body && JSON.stringify(body), headers });
  return { ...answer, json: JSON.parse(answer.text) };
}

const add = (router, sim, more = {}) =>
  admin(router, 'POST', '/workers', { body: { ...sim.worker(), model: 'demo', ...more } });

const workers = async (router, query = '') => (await admin(router, 'GET', `/workers${query}`)).json.workers;

const gone = (router, sim) =>
  until(`${sim.process.name} is gone`, async () => (await workers(router)).every(({ url }) => url !== sim.worker().url));

/** `baton workers …` to its end. */
const batonWorkers = (s, args, options) => runBaton(s, ['workers', ...args], options);

scenario('a router without models gets its workers by the admin API', async (s) => {
  const [prefill, decode, other] = await Promise.all(['prefill', 'decode', 'decode'].map((role) => Sim.start(s, { role })));
  const router = await Router.start(s, { models: [] });
  const answers = async (text) => {
    const body = chat(text, streamed);
    const answer = await ask(router, body);
    checkExact(answer, body);
    return servedBy(answer);
  };

  await s.step('no worker is there at first', async () => {
    assert.deepEqual(await workers(router), []);
    assert.equal((await ask(router, chat('Hello'))).error.code, 'model_not_found');
    assert.equal((await router.readiness()).ready, false);
  });
  await s.step('what is added serves at once, disaggregated', async () => {
    const added = await add(router, prefill, { id: 'p-1' });
    assert.equal(added.status, 201, added.text);
    assert.equal((await add(router, decode)).status, 201);
    assert.deepEqual(await answers('Hello'), { prefill: 'p-1', decode: decode.address });
    const found = await admin(router, 'GET', added.headers.location);
    assert.equal(found.json.name, 'p-1');
    assert.equal(found.json.origin, 'admin');
    assert.equal(found.json.announced.role, 'prefill');
  });
  await s.step('adding it again is no news', async () => {
    const again = await add(router, decode);
    assert.equal(again.status, 200);
    assert.equal((await workers(router)).length, 2);
  });
  await s.step('the readiness of the model is told on both addresses', async () => {
    for (const address of [router.admin, router.address]) {
      const answer = await request(address, { method: 'GET', path: '/v1/models/demo/ready' });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(JSON.parse(answer.text).namespaces.default.roles.prefill.workers, 1);
    }
  });
  await s.step('a taint that is given by PATCH counts at once', async () => {
    const body = chat('x', { nvext: { routing_constraints: { required_taints: ['big'] } } });
    assert.equal((await router.route(body)).status, 503);
    for (const one of ['p-1', decode.address]) {
      const patched = await admin(router, 'PATCH', `/workers/${encodeURIComponent(one)}`, { body: { taints: ['big'] } });
      assert.equal(patched.status, 200, patched.text);
    }
    const { status, decode: chosen } = await router.route(body);
    assert.equal(status, 200);
    assert.equal(chosen.worker, decode.address);
  });
  await s.step('a role that is changed by PATCH, too', async () => {
    await add(router, other);
    const patched = await admin(router, 'PATCH', `/workers/${other.address}`, { body: { role: 'prefill' } });
    assert.equal(patched.json.role, 'prefill', patched.text);
    assert.equal((await workers(router, '?role=prefill&model=demo')).length, 2);
    await admin(router, 'PATCH', `/workers/${other.address}`, { body: { role: 'decode' } });
    assert.equal((await workers(router, '?role=decode')).length, 2);
  });
  await s.step('a number that nothing holds is refused by its key', async () => {
    const path = `/workers/${other.address}`;
    const patched = await request(router.admin, { method: 'PATCH', path, body: '{"draining":true,"kv_blocks":1e999}' });
    assert.equal(patched.status, 400, patched.text);
    assert.match(JSON.parse(patched.text).error.message, /^kv_blocks: /);
    assert.equal(await router.metric('baton_escaped_exceptions_total'), 0);
  });
  await s.step('a worker that is removed serves no request', async () => {
    const removed = await admin(router, 'DELETE', `/workers/${decode.address}`);
    assert.equal(removed.status, 200, removed.text);
    assert.equal(removed.json.leaving, true);
    for (let i = 0; i < 5; ++i) assert.equal((await answers(`After ${i}`)).decode, other.address);
    await gone(router, decode);
    assert.equal((await admin(router, 'GET', `/workers/${decode.address}`)).status, 404);
  });
  await s.step('with its last worker the model is gone', async () => {
    for (const { number } of await workers(router)) await admin(router, 'DELETE', `/workers/${number}`);
    await gone(router, prefill);
    assert.equal((await ask(router, chat('Bye'))).error.code, 'model_not_found');
  });
});

scenario('a worker that is drained ends what it has begun, gets nothing new, and is gone', async (s) => {
  const sims = await Promise.all([1, 2].map(() => Sim.start(s, { decodeMs: 80, minOutput: 60, maxOutput: 60 })));
  const router = await Router.start(s, { models: [] });
  for (const sim of sims) await add(router, sim);
  const running = new Call(router.address, chat('A long one', streamed));
  const busy = await until('it runs', async () => (await workers(router)).find(({ in_flight: load }) => load > 0));
  await until('it streams', () => running.events > 2);
  const leaving = sims.find((sim) => sim.worker().url === busy.url);
  const staying = sims.find((sim) => sim !== leaving);

  const drained = await admin(router, 'POST', `/workers/${busy.number}/drain`);
  assert.equal(drained.json.state, 'draining', drained.text);
  const { requests } = await leaving.state();
  await Promise.all(
    Array.from({ length: 6 }, async (_, i) => {
      const answer = await ask(router, chat(`New ${i}`, { max_tokens: 2 }));
      assert.equal(answer.status, 200, answer.raw);
      assert.equal(servedBy(answer).decode, staying.address);
    }),
  );
  assert.equal(running.over, undefined, 'the stream still runs');
  assert.ok((await workers(router)).some(({ number }) => number === busy.number), 'and its worker is still there');
  const ended = await running.ended;
  assert.ok(ended.complete);
  assert.equal(readStream(ended.text).done, 1);
  assert.deepEqual(readStream(ended.text).errors, []);
  assert.equal((await leaving.state()).requests, requests, 'it got nothing new');
  await gone(router, leaving);
});

scenario('a worker of the configuration can be drained and taken back, but not removed', async (s) => {
  const sims = await Promise.all([1, 2].map(() => Sim.start(s)));
  const router = await Router.start(s, { models: [{ name: 'demo', workers: sims.map((sim) => sim.worker()) }] });
  await router.allUp();
  const path = `/workers/${sims[0].address}`;
  for (const [method, body] of [['DELETE'], ['PATCH', { role: 'decode' }]]) {
    const refused = await admin(router, method, path, { body });
    assert.equal(refused.status, 409, refused.text);
    assert.equal(refused.json.error.code, 'conflict');
    assert.match(refused.json.error.message, /configuration.*drain/);
  }
  await admin(router, 'POST', `${path}/drain`);
  for (let i = 0; i < 4; ++i) assert.equal(servedBy(await ask(router, chat(`x${i}`))).decode, sims[1].address);
  assert.equal((await admin(router, 'DELETE', `${path}/drain`)).status, 200);
  const seen = new Set();
  for (let i = 0; i < 4; ++i) seen.add(servedBy(await ask(router, chat(`y${i}`))).decode);
  assert.ok(seen.has(sims[0].address), 'it serves again');
});

scenario('what is wrong is said in full', async (s) => {
  const router = await Router.start(s, { models: [] });
  const cases = [
    [await admin(router, 'POST', '/workers', { body: { url: 'x', engine: 'llvm' } }), 400, /url: .*\n?.*engine: /s],
    [await admin(router, 'GET', '/workers/nobody'), 404, /GET \/workers/],
    [await admin(router, 'POST', '/workers/nobody/drain'), 404, /nobody/],
    [await admin(router, 'PUT', '/workers'), 405, /GET.*POST/],
    [await admin(router, 'GET', '/workers?color=red'), 400, /model=/],
  ];
  for (const [answer, status, message] of cases) {
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.json.error.message, message);
  }
});

scenario('keys keep strangers from workers, and from nothing else', async (s) => {
  const keys = s.file('keys');
  await writeFile(keys, '# for operators\nsesame\n');
  const router = await Router.start(s, { models: [], admin_keys_file: keys });
  for (const path of ['/health', '/metrics']) {
    assert.equal((await request(router.admin, { method: 'GET', path })).status, 200, path);
  }
  for (const Authorization of [undefined, 'Bearer wrong', 'sesame']) {
    for (const [method, path] of [['GET', '/workers'], ['POST', '/v1/route'], ['DELETE', '/workers/1']]) {
      const answer = await admin(router, method, path, { headers: Authorization ? { Authorization } : {} });
      assert.equal(answer.status, 401, `${method} ${path} with ${Authorization}`);
      assert.equal(answer.headers['www-authenticate'], 'Bearer');
    }
  }
  assert.equal((await admin(router, 'GET', '/workers', { headers: { Authorization: 'Bearer sesame' } })).status, 200);

  const refused = await batonWorkers(s, ['--admin', router.admin], { expect: 1 });
  assert.match(refused.stderr, /key/);
  assert.equal((await batonWorkers(s, ['--admin', router.admin, '--key-file', keys])).code, 0);
  assert.doesNotMatch(router.process.stderr, /sesame/);
});

scenario('baton workers shows and changes them', async (s) => {
  const [prefill, decode] = await Promise.all(['prefill', 'decode'].map((role) => Sim.start(s, { role })));
  const router = await Router.start(s, { models: [] });
  const at = ['--admin', `http://${router.admin}`];
  const addArgs = (sim) => ['add', '--model', 'demo', '--url', sim.worker().url, '--engine', 'vllm', '--role', sim.role];

  await s.step('no worker', async () => {
    assert.match((await batonWorkers(s, at)).stdout, /no workers/);
  });
  await s.step('add', async () => {
    const { stdout } = await batonWorkers(s, [...addArgs(prefill), '--id', 'p-1', '--set', 'taints=["big"]', ...at]);
    assert.match(stdout, /p-1/);
    await batonWorkers(s, [...at, ...addArgs(decode)]);
    assert.deepEqual((await workers(router)).find(({ name }) => name === 'p-1').announced.taints, ['big']);
    checkExact(await ask(router, chat('Hello', streamed)), chat('Hello', streamed));
  });
  await s.step('the table, where the environment says which router', async () => {
    // Whether a worker tells of its cache is found out after it is ready.
    await until('both are known', async () => {
      const ready = await workers(router, '?state=ready');
      return ready.length === 2 && ready.every(({ kv_cache }) => kv_cache?.source === 'decisions');
    });
    const { stdout } = await batonWorkers(s, [], { env: { BATON_ADMIN: router.admin } });
    const [head, first, second, , sum] = stdout.split('\n');
    assert.match(head, /^MODEL +NAMESPACE +ROLE +NO +WORKER +ENGINE +STATE +IN FLIGHT +LAST SUCCESS +CACHE/);
    assert.match(first, new RegExp(`^demo +default +decode +2 +${decode.address} +vllm +ready +0 +(now|\\d+ s ago) +decisions$`));
    assert.match(second, /^demo +default +prefill +1 +p-1 +vllm +ready +0 /);
    assert.equal(sum, '2 workers: 2 ready');
    assert.doesNotMatch(stdout, /\x1b/, 'no colours without a terminal');
  });
  await s.step('JSON', async () => {
    const { stdout } = await batonWorkers(s, ['--json', ...at]);
    assert.equal(JSON.parse(stdout).workers.length, 2);
  });
  await s.step('watch', async () => {
    const watching = s.adopt(new Process('baton workers --watch', ['workers', '--watch', ...at]));
    watching.expectedExit = null; // ended by the signal
    await until('it is drawn twice', () => watching.stdout.split('2 workers').length > 2);
    watching.signal('SIGINT');
    assert.equal((await watching.ended()).signal, 'SIGINT');
  });
  await s.step('drain, undrain, remove', async () => {
    const { stdout } = await batonWorkers(s, ['drain', decode.address, ...at]);
    assert.match(stdout, /is draining/);
    await gone(router, decode);
    const late = await batonWorkers(s, ['undrain', decode.address, ...at], { expect: 1 });
    assert.match(late.stderr, /no worker/);
    await batonWorkers(s, ['remove', 'p-1', ...at]);
    await gone(router, prefill);
  });
  await s.step('what the router refuses is told in its words', async () => {
    const args = ['add', '--model', 'demo', '--url', 'http://127.0.0.1:9', '--engine', 'llvm', ...at];
    assert.match((await batonWorkers(s, args, { expect: 1 })).stderr, /vllm/);
  });
  await s.step('no router, no sense, help', async () => {
    const unanswered = await batonWorkers(s, ['--admin', '127.0.0.1:1'], { expect: 1 });
    assert.match(unanswered.stderr, /no answer at http:\/\/127\.0\.0\.1:1.*--admin/);
    const notAdmin = await batonWorkers(s, ['--admin', router.address], { expect: 1 });
    assert.match(notAdmin.stderr, /nothing at \/workers/);
    await batonWorkers(s, ['--admin', 'ftp://x'], { expect: 2 });
    await batonWorkers(s, ['drain'], { expect: 2 });
    await batonWorkers(s, ['--key-file', s.file('none')], { expect: 2 });
    const help = await batonWorkers(s, ['--help']);
    for (const word of ['--admin', '--watch', 'drain', 'add', 'Examples']) assert.ok(help.stdout.includes(word), word);
  });
});
