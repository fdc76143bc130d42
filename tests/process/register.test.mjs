// SPDX-License-Identifier: Apache-2.0
// `baton register` beside a simulated engine and a real etcd: the life of one worker, as routers see it.
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';

import { COMPLETIONS, completion } from './support/ask.mjs';
import { Etcd } from './support/etcd.mjs';
import { Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { freePort } from './support/ports.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { PREFIX, Sidecar } from './support/sidecar.mjs';

const freeAddress = async () => `127.0.0.1:${await freePort()}`;
const portOf = (address) => address.split(':')[1];

scenario('an engine is announced once it is healthy, as what it says it is', async (s) => {
  const etcd = await Etcd.start(s);
  const address = await freeAddress();
  const sidecar = Sidecar.start(s, etcd, address, {
    role: 'decode', 'advertise-url': 'http://10.1.2.3:8000', id: 'd1', namespace: 'blue', set: ['taints=spot,a100', 'topology=rack=r7'],
  });
  await sidecar.said('engine_awaited');
  assert.equal(await sidecar.find(), undefined);
  await Sim.start(s, { role: 'decode', port: portOf(address), model: 'org/tiny', dpSize: 2 });
  const { key, lease, instance, ...worker } = await sidecar.appears();
  assert.equal(key, `${PREFIX}org/tiny/decode/${instance}`);
  assert.match(instance, /^[0-9a-f]{16}$/);
  assert.notEqual(lease, '0', 'it stands under a lease');
  assert.deepEqual(worker, {
    model: 'org/tiny', url: 'http://10.1.2.3:8000', engine: 'vllm', role: 'decode', id: 'd1', namespace: 'blue',
    data_parallel_size: 2, taints: ['spot', 'a100'], topology: ['rack=r7'], draining: false,
  });
  assert.equal(await sidecar.process.address(sidecar.readyFile), '10.1.2.3:8000');
  assert.equal(sidecar.lines('engine_awaited').length, 1, 'what it waits for is said once');
  await sidecar.leaves();
});

scenario('an SGLang prefill worker is announced with its bootstrap port', async (s) => {
  const etcd = await Etcd.start(s);
  const bootstrapReady = s.file('bootstrap.ready');
  const sim = await Sim.start(s, { engine: 'sglang', role: 'prefill', bootstrapReadyFile: bootstrapReady });
  const sidecar = Sidecar.start(s, etcd, sim.address, { engine: 'sglang', role: 'prefill', instance: 'run-1' });
  const worker = await sidecar.appears();
  assert.equal(worker.key, `${PREFIX}demo/prefill/run-1`);
  assert.equal(String(worker.bootstrap_port), portOf(await sim.process.address(bootstrapReady)));
  assert.equal(sidecar.lines('loopback_announced').length, 1, '127.0.0.1 is not found from elsewhere');
  await sidecar.leaves();
});

scenario('a registration outlives restarts of etcd, and the loss of its data', async (s) => {
  const etcd = await Etcd.start(s);
  const sim = await Sim.start(s);
  const sidecar = Sidecar.start(s, etcd, sim.address, { ttl: '9s', 'etcd.timeout': '5s' });
  const before = await sidecar.appears();
  for (const [round, losesData] of [false, true].entries()) {
    await etcd.kill();
    await sidecar.said('registration_stalled', round + 1);
    if (losesData) await rm(s.file(`${etcd.name}.data`), { recursive: true });
    await etcd.restart();
    await sidecar.said('registration_resumed', round + 1);
    const after = await sidecar.appears();
    assert.equal(after.key, before.key, 'the same instance');
    assert.equal(sidecar.lines('registration_lost').length, losesData ? 1 : 0);
  }
  assert.equal(sidecar.lines('registration_stalled').length, 2, 'each change is said once');
  await sidecar.leaves();
});

scenario('an engine that dies is withdrawn at once, and returns as another instance', async (s) => {
  const etcd = await Etcd.start(s);
  const address = await freeAddress();
  const sidecar = Sidecar.start(s, etcd, address, { ttl: '60s' }); // so the lease cannot be what takes it away
  const first = await Sim.start(s, { port: portOf(address) });
  const before = await sidecar.appears();
  first.process.expectedExit = undefined;
  first.process.signal('SIGKILL');
  await sidecar.disappears();
  await Sim.start(s, { port: portOf(address) });
  const after = await sidecar.appears();
  assert.notEqual(after.instance, before.instance);
  assert.equal(sidecar.lines('engine_lost').length, 1);
  await sidecar.leaves();
});

scenario('SIGTERM drains: no new requests, the running ones end, then it is gone', async (s) => {
  const etcd = await Etcd.start(s);
  const sim = await Sim.start(s, { decodeMs: 10, minOutput: 400, maxOutput: 400 });
  const sidecar = Sidecar.start(s, etcd, sim.address);
  const { key } = await sidecar.appears();
  const running = request(sim.address, { path: COMPLETIONS, body: JSON.stringify(completion('Let me finish', { max_tokens: 400 })) });
  let ended = false;
  running.then(() => (ended = true));
  await until('the request runs', async () => (await sim.state()).running > 0);
  sidecar.process.signal('SIGTERM');
  const draining = await until('it is said to drain', async () => {
    const worker = await sidecar.find();
    assert.ok(worker, 'it stays while its request runs');
    return worker.draining && worker;
  });
  assert.equal(draining.key, key);
  assert.ok(!ended, 'the request still runs');
  await until('the worker is gone', async () => !(await sidecar.find()));
  assert.ok(ended, 'the request ended before');
  assert.equal((await inTime('the answer', running)).status, 200);
  assert.deepEqual(await sidecar.process.ended(), { code: 0, signal: null });
  assert.deepEqual(sidecar.lines('drained').map(({ outcome }) => outcome), ['idle']);
});

scenario('a second signal waits for no request', async (s) => {
  const etcd = await Etcd.start(s);
  const sim = await Sim.start(s, { decodeMs: 50, minOutput: 5000, maxOutput: 5000 });
  const sidecar = Sidecar.start(s, etcd, sim.address);
  await sidecar.appears();
  const abort = new AbortController();
  const running = request(sim.address, { path: COMPLETIONS, body: JSON.stringify(completion('Forever', { max_tokens: 5000 })), signal: abort.signal });
  running.catch(() => {});
  await until('the request runs', async () => (await sim.state()).running > 0);
  sidecar.process.signal('SIGTERM');
  await until('it drains', async () => (await sidecar.find())?.draining);
  sidecar.process.signal('SIGINT');
  assert.deepEqual(await sidecar.process.ended(), { code: 0, signal: null });
  assert.equal(await sidecar.find(), undefined);
  abort.abort();
});

scenario('what the engine denies ends it with a sentence', async (s) => {
  const etcd = await Etcd.start(s);
  const sim = await Sim.start(s, { engine: 'sglang', role: 'decode' });
  const cases = [
    [{ engine: 'vllm', role: 'decode' }, /engine is vllm, but the server is sglang/],
    [{ engine: 'sglang', role: 'prefill' }, /role is prefill, but the engine was started with --disaggregation-mode decode/],
    [{ engine: 'sglang', role: 'decode', model: 'other' }, /the model is 'other', but the server serves 'demo'/],
    [{ engine: 'sglang', role: 'decode', set: 'data_parallel_size=4' }, /data_parallel_size is 4, but the engine has 1 rank/],
  ];
  for (const [flags, sentence] of cases) {
    const sidecar = Sidecar.start(s, etcd, sim.address, flags);
    sidecar.process.expectedExit = 2;
    assert.deepEqual(await sidecar.process.ended(), { code: 2, signal: null });
    assert.match(sidecar.lines('engine_refused')[0].error, sentence);
    assert.equal(await sidecar.find(), undefined);
  }
});

scenario('a command line that makes no sense is refused before anything starts', async (s) => {
  const etcd = { url: 'http://127.0.0.1:1' };
  const cases = [
    [{ role: 'decoder' }, /role: unknown .decoder.; did you mean decode\?/],
    [{ set: 'tants=spot' }, /tants/],
    [{ set: 'role=decode' }, /--set role/],
    [{ set: 'bootstrap_port=99' }, /bootstrap_port: is only for SGLang prefill workers/],
    [{ 'engine-url': 'ftp://x' }, /--engine-url/],
    [{ ttl: '10' }, /--ttl/],
    [{ etcd: 'nowhere' }, /--etcd/],
    [{ 'etcd.user': 'root' }, /etcd\.password_file/],
  ];
  for (const [flags, sentence] of cases) {
    const { process } = Sidecar.start(s, etcd, '127.0.0.1:1', flags);
    process.expectedExit = 2;
    assert.deepEqual(await process.ended(), { code: 2, signal: null }, process.stderr);
    assert.match(process.stderr, sentence);
    assert.match(process.stderr, /nothing was registered/);
  }
});

scenario('a wrong password is told, and a right one taken', async (s) => {
  const etcd = await Etcd.start(s, { auth: { user: 'root', password: 'secret' } });
  const sim = await Sim.start(s);
  const start = async (password) => {
    const file = s.file(`password-${password}`);
    await writeFile(file, `${password}\n`);
    return Sidecar.start(s, etcd, sim.address, { 'etcd.user': 'root', 'etcd.password-file': file });
  };
  const wrong = await start('guess');
  await wrong.said('registration_stalled');
  assert.match(wrong.lines('registration_stalled')[0].error, /authentication failed, invalid user ID or password/);
  assert.ok(!wrong.process.exited, 'it tries on');
  assert.doesNotMatch(wrong.process.stderr, /guess/);
  await wrong.leaves();
  const right = await start('secret');
  await right.appears();
  await right.leaves();
});
