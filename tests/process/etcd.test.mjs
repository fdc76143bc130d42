// SPDX-License-Identifier: Apache-2.0
// Workers that come, go and stay by way of a real etcd, whatever becomes of it.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import net from 'node:net';

import { ask, chat, checkExact, servedBy } from './support/ask.mjs';
import { Call } from './support/call.mjs';
import { Etcd } from './support/etcd.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const PREFIX = '/baton/workers/';
const NOBODY = '127.0.0.2'; // no test listens there
const keyOf = (sim) => PREFIX + sim.address;
const valueOf = (sim, more = {}) => JSON.stringify({ model: 'demo', ...sim.worker(), instance: 'one', ...more });
const base64 = (text) => Buffer.from(text).toString('base64');

const startSims = (s, roles, flags = {}) => Promise.all(roles.map((role) => Sim.start(s, { role, ...flags })));
// Freed memory that a sanitizer holds back would count as growth.
const ENVIRONMENT = { ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64` };
const startRouter = (s, etcd, more = {}) => Router.start(s, { etcd: { endpoints: [etcd.url], ...more } }, ENVIRONMENT);
const putAll = (etcd, sims, lease) => Promise.all(sims.map((sim) => etcd.put(keyOf(sim), valueOf(sim), lease)));

/** How many workers there are; with labels, of those only. */
async function workers(router, labels = {}) {
  return (await router.metrics())
    .filter(({ name }) => name === 'baton_workers')
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

const untilUp = (router, count) =>
  until(`${count} workers are ready`, async () => (await workers(router, { state: 'ready' })) === count);
const source = async (router) => (await router.readiness()).sources.etcd;
const untilWell = (router) => until('etcd is followed', async () => (await source(router)).well);
const untilLost = (router) => until('etcd is missed', async () => !(await source(router)).well);
const changes = (router) => router.metric('baton_worker_changes_total');

/** An etcd, simulators registered there, and a router that has found them. */
async function startFleet(s, { roles = ['prefill', 'decode'], sim = {}, lease = 0, etcd: options = {} } = {}) {
  const [etcd, sims] = await Promise.all([Etcd.start(s), startSims(s, roles, sim)]);
  await putAll(etcd, sims, lease);
  const router = await startRouter(s, etcd, options);
  await untilUp(router, sims.length);
  return { etcd, sims, router };
}

async function checkServed(router, count) {
  for (let i = 0; i < count; ++i) {
    const body = chat(`request ${i} of ${count}`);
    const answer = await ask(router, body);
    checkExact(answer, body);
    const { prefill, decode } = servedBy(answer);
    assert.ok(prefill && decode, 'served disaggregated');
  }
}

/** Requests on several senders until it is stopped; none may fail. */
function load(router, width = 3) {
  let over = false;
  let sent = 0;
  const failures = [];
  const sender = async (number) => {
    while (!over) {
      const body = chat(`sender ${number}, request ${sent++}`);
      try {
        checkExact(await ask(router, body), body);
      } catch (error) {
        failures.push(error.message);
      }
    }
  };
  const senders = Promise.all(Array.from({ length: width }, (_, number) => sender(number)));
  return {
    sent: () => sent,
    async stop() {
      over = true;
      await senders;
      assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${sent} requests failed`);
      assert.ok(sent > 0, 'there were requests');
    },
  };
}

/** A way to etcd that can be closed. */
async function startProxy(s, etcd) {
  const sockets = new Set();
  let closed = false;
  const server = net.createServer((near) => {
    if (closed) return near.destroy();
    const far = net.connect(etcd.port, '127.0.0.1');
    for (const [one, other] of [[near, far], [far, near]]) {
      sockets.add(one);
      one.on('error', () => other.destroy()).on('close', () => (sockets.delete(one), other.destroy()));
      one.pipe(other);
    }
    return undefined;
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      closed = true;
      for (const socket of sockets) socket.destroy();
    },
    open() {
      closed = false;
    },
  };
  s.after(async () => {
    proxy.close();
    await new Promise((resolve) => server.close(resolve));
  });
  return proxy;
}

/** Puts ({key, value}) and deletes ({key}) as one transaction each hundred: etcd takes 128. */
async function transact(etcd, operations) {
  for (let i = 0; i < operations.length; i += 100) {
    const success = operations.slice(i, i + 100).map(({ key, value, lease = 0 }) =>
      value === undefined
        ? { request_delete_range: { key: base64(key) } }
        : { request_put: { key: base64(key), value: base64(value), lease: String(lease) } });
    await etcd.call('kv/txn', { success });
  }
}

/** A worker of which nothing is there. */
const ghost = (port, lease) => ({
  key: `${PREFIX}ghost-${port}`,
  value: JSON.stringify({
    model: 'demo',
    url: `http://${NOBODY}:${port}`,
    engine: 'vllm',
    role: port % 2 ? 'prefill' : 'decode',
  }),
  lease,
});

async function residentMegabytes(router) {
  const status = await readFile(`/proc/${router.process.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) / 1024;
}

scenario('workers join and leave by their keys', async (s) => {
  const limits = { minOutput: 600, maxOutput: 600 };
  const [etcd, [prefill, decode, other]] = await Promise.all([
    Etcd.start(s),
    startSims(s, ['prefill', 'decode', 'decode'], { decodeMs: 10, ...limits }),
  ]);
  const router = await startRouter(s, etcd);
  await untilWell(router);
  await s.step('they appear, and serve disaggregated', async () => {
    await putAll(etcd, [prefill, decode], await etcd.lease(60));
    await untilUp(router, 2);
    const body = chat('Who are you?', { max_tokens: 8 });
    const answer = await ask(router, body);
    checkExact(answer, body, limits);
    assert.deepEqual(servedBy(answer), { prefill: prefill.address, decode: decode.address });
  });
  await s.step('a value that cannot be read is reported, and does no harm', async () => {
    await etcd.put(`${PREFIX}bad`, '{"model": "demo", "url": "ftp://x"}');
    const line = await until('it is refused', () => router.logLines('etcd_entry_refused')[0]);
    assert.equal(line.key, `${PREFIX}bad`);
    assert.match(line.problem, /url/);
    assert.equal(await router.metric('baton_etcd_entries_refused'), 1);
    assert.equal(await workers(router), 2);
  });
  await s.step('one that leaves ends its streams normally', async () => {
    const body = chat('Finish me', { stream: true });
    const running = new Call(router.address, body);
    await until('the stream runs', () => running.events > 2);
    await etcd.put(keyOf(other), valueOf(other));
    await untilUp(router, 3);
    await etcd.del(keyOf(decode)); // its lease lives: this is meant
    await until('it leaves', () =>
      router.logLines('worker_changed').some(({ worker, to }) => worker === decode.address && to === 'leaving'));
    assert.ok(!running.over, 'the stream still runs');
    const next = chat('Who is next?', { max_tokens: 8 });
    assert.equal(servedBy(await ask(router, next)).decode, other.address);
    const { text, complete } = await inTime('the end of the stream', running.ended);
    assert.ok(complete && text.endsWith('data: [DONE]\n\n'), text.slice(-200));
    const said = text.split('\n\n').filter((event) => event.startsWith('data: {'))
      .map((event) => JSON.parse(event.slice(6)).choices[0]?.delta?.content ?? '').join('');
    assert.equal(said, expectedAnswer(body, limits).choices[0].text);
    await until('it is gone', async () => (await workers(router)) === 2);
  });
});

scenario('etcd is killed and comes back', async (s) => {
  const etcd = await Etcd.start(s);
  const sims = await startSims(s, ['prefill', 'decode', 'decode']);
  await putAll(etcd, sims, await etcd.lease(60));
  const router = await startRouter(s, etcd);
  await untilUp(router, 3);
  const before = await changes(router);
  await etcd.kill();
  await untilLost(router);
  await checkServed(router, 50);
  const { ready, sources } = await router.readiness();
  assert.ok(ready);
  assert.match(sources.etcd.detail, /^etcd is away since 2\d{3}-.*: .+; serving with 3 workers last known$/);
  assert.equal(await router.metric('baton_etcd_connected'), 0);
  await etcd.restart();
  await untilWell(router);
  assert.equal(await changes(router), before, 'no worker came or went');
  assert.equal((await router.logged('etcd_lost')).length, 1);
  assert.equal((await router.logged('etcd_back')).length, 1);
  await etcd.del(keyOf(sims[2]));
  await until('news come through again', async () => (await workers(router)) === 2);
  await checkServed(router, 5);
});

scenario('etcd sleeps for longer than the leases', async (s) => {
  const etcd = await Etcd.start(s);
  const sims = await startSims(s, ['prefill', 'decode']);
  const router = await startRouter(s, etcd, { linger: '60s' });
  const lease = await etcd.lease(2);
  let asleep = false;
  s.after(() => (asleep = true));
  const sidecar = (async () => {
    while (!asleep) {
      await etcd.call('lease/keepalive', { ID: lease });
      const beat = Date.now();
      await until('the next beat', () => asleep || Date.now() - beat > 300);
    }
  })();
  await putAll(etcd, sims, lease);
  await untilUp(router, 2);
  const before = await changes(router);
  const running = load(router, 2);
  asleep = true;
  await sidecar;
  etcd.pause();
  const paused = Date.now();
  await until('the leases are over', () => Date.now() - paused > 4_000);
  etcd.resume();
  await until('etcd has let them go', async () => (await router.metric('baton_etcd_lingering')) === 2);
  assert.match((await source(router)).detail ?? '', /2 workers are without a lease/);
  await checkServed(router, 5);
  await putAll(etcd, sims, await etcd.lease(60));
  await until('they are registered again', async () => (await router.metric('baton_etcd_lingering')) === 0);
  await running.stop();
  assert.equal(await changes(router), before, 'no worker came or went');
});

scenario('a worker that loses its lease stays, unless its engine is away, too', async (s) => {
  const { etcd, sims, router } = await startFleet(s, { etcd: { linger: '5m' } });
  const [lost, kept] = await startSims(s, ['decode', 'decode']);
  const lease = await etcd.lease(60);
  await putAll(etcd, [lost, kept], lease);
  await untilUp(router, sims.length + 2);
  await etcd.revoke(lease);
  await until('both linger', async () => (await router.metric('baton_etcd_lingering')) === 2);
  lost.process.expectedExit = undefined;
  lost.process.signal('SIGKILL');
  await until('one leaves', async () => {
    await checkServed(router, 1); // which also finds out that it is away
    return (await workers(router)) === sims.length + 1;
  });
  const [{ key }] = await router.logged('etcd_linger_over');
  assert.equal(key, keyOf(lost));
  assert.equal(await router.metric('baton_etcd_lingering'), 1);
});

scenario('etcd is compacted while no router listens', async (s) => {
  const [etcd, sims] = await Promise.all([Etcd.start(s), startSims(s, ['prefill', 'decode', 'decode'])]);
  const proxy = await startProxy(s, etcd);
  await putAll(etcd, sims.slice(0, 2));
  const router = await startRouter(s, proxy);
  await untilUp(router, 2);
  const joined = (sim) =>
    router.logLines('worker_changed').filter(({ worker, to }) => worker === sim.address && to === 'joined').length;
  proxy.close();
  await untilLost(router);
  await etcd.put(keyOf(sims[2]), valueOf(sims[2]));
  await etcd.del(keyOf(sims[1]));
  for (let i = 0; i < 20; ++i) await etcd.put(`${PREFIX}filler`, valueOf(sims[2]));
  await etcd.del(`${PREFIX}filler`);
  await etcd.compact();
  await checkServed(router, 5);
  proxy.open();
  await untilWell(router);
  await until('it has converged', async () => (await workers(router)) === 2);
  await untilUp(router, 2);
  assert.deepEqual(sims.map(joined), [1, 1, 1]);
  const body = chat('Who is left?');
  assert.deepEqual(servedBy(await ask(router, body)), { prefill: sims[0].address, decode: sims[2].address });
});

scenario('etcd wants certificates and a password', async (s) => {
  const auth = { user: 'baton', password: 'open sesame' };
  const [etcd, sims] = await Promise.all([
    Etcd.start(s, { tls: 'mutual', auth }),
    startSims(s, ['prefill', 'decode']),
  ]);
  await putAll(etcd, sims, await etcd.lease(60));
  const file = s.file('password');
  await writeFile(file, `${auth.password}\n`);
  const router = await startRouter(s, etcd, {
    ca: etcd.certificate,
    certificate: etcd.certificate,
    key: etcd.key,
    user: auth.user,
    password_file: file,
  });
  await untilUp(router, 2);
  await checkServed(router, 5);
  await etcd.del(keyOf(sims[0]));
  await until('news come through', async () => (await workers(router)) === 1);
  assert.ok(!router.process.stderr.includes(auth.password));
});

scenario('the first of two endpoints is dead', async (s) => {
  const [etcd, sims] = await Promise.all([Etcd.start(s), startSims(s, ['prefill', 'decode'])]);
  const proxy = await startProxy(s, etcd);
  proxy.close();
  await putAll(etcd, sims);
  const router = await startRouter(s, etcd, { endpoints: [proxy.url, etcd.url] });
  await untilUp(router, 2);
  await untilWell(router);
  await checkServed(router, 5);
});

scenario('a thousand workers join at once', async (s) => {
  const { etcd, sims, router } = await startFleet(s);
  const running = load(router);
  const ghosts = Array.from({ length: 1_000 }, (_, i) => ghost(i + 1));
  await transact(etcd, ghosts);
  await until('all are known', async () => (await workers(router)) === sims.length + ghosts.length);
  const sent = running.sent();
  await until('requests go on', () => running.sent() > sent + 50);
  await transact(etcd, ghosts.map(({ key }) => ({ key })));
  await until('all are gone', async () => (await workers(router)) === sims.length);
  await running.stop();
  assert.equal(await router.metric('baton_etcd_listings_total'), 1, 'a crowd is no reason to list again');
});

scenario('two hundred join or leave each second', async (s) => {
  // An etcd that is late on a busy machine is not asked anew.
  const { etcd, sims, router } = await startFleet(s, { etcd: { timeout: '30s' } });
  const lease = await etcd.lease(600);
  const running = load(router);
  // Every 50 ms ten of them, for ten seconds; each stays for one second.
  const begin = Date.now();
  let warm;
  for (let tick = 0; tick < 200; ++tick) {
    await until('the next tick', () => Date.now() >= begin + 50 * tick);
    const five = (first) => Array.from({ length: 5 }, (_, i) => ghost(1 + ((first * 5 + i) % 1_000), lease));
    const leaving = tick >= 20 ? five(tick - 20).map(({ key }) => ({ key })) : [];
    await transact(etcd, [...five(tick), ...leaving]);
    if (tick === 60) warm = await residentMegabytes(router);
  }
  const grown = (await residentMegabytes(router)) - warm;
  await running.stop();
  assert.ok(grown < 48, `the router grew by ${grown.toFixed(1)} MB`);
  await transact(etcd, [...(await etcd.list(`${PREFIX}ghost-`)).keys()].map((key) => ({ key })));
  await until('all are gone', async () => (await workers(router)) === sims.length);
  assert.equal(await router.metric('baton_etcd_listings_total'), 1);
  assert.equal(router.logLines('etcd_lost').length, 0);
});
