// SPDX-License-Identifier: Apache-2.0
// Processes that end and are followed by others at their address: which of them is at fault, and how that is found out.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

import { ask, chat, checkExact, servedBy } from './support/ask.mjs';
import { Call } from './support/call.mjs';
import { Etcd } from './support/etcd.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { Sidecar } from './support/sidecar.mjs';

// So long that only a worker that need not wait for it serves again.
const LONG_BACKOFF = { failures: 3, backoff: '5m', backoff_max: '5m' };

/** Asks until it is served, which it must be exactly. */
async function servesAgain(router, good = () => true, limits = {}) {
  const body = chat('Is it so by now?');
  const answer = await until('it serves again', async () => {
    const one = await ask(router, body);
    return one.status === 200 && good(servedBy(one)) && one;
  });
  checkExact(answer, body, limits);
  return servedBy(answer);
}

scenario('a new process at the address of an ejected one owes nothing for the old one', async (s) => {
  const sim = { decodeMs: 10, minOutput: 400, maxOutput: 400 };
  const fleet = await Fleet.start(s, { counts: { prefill: 1, decode: 2 }, sim, config: { health: LONG_BACKOFF } });
  const { router } = fleet;
  await router.allUp();
  const streams = Array.from({ length: 8 }, (_, i) => new Call(router.address, chat(`Stream ${i}`, { stream: true })));
  await until('they run', () => streams.every(({ events }) => events > 2));
  const [decode] = fleet.of('decode');
  await decode.kill();
  await Promise.all(streams.map((stream) => inTime('the end of a stream', stream.ended)));
  const ejected = ({ worker, to }) => worker === decode.address && to === 'ejected';
  await until('it is ejected', () => router.logLines('worker_changed').some(ejected));
  await router.untilState(decode, 'unreachable'); // its end is seen within five minutes
  await Sim.again(s, () => Sim.start(s, { role: 'decode', port: decode.address.split(':')[1], ...sim }));
  await servesAgain(router, ({ decode: worker }) => worker === decode.address, sim);
});

// Prefill dies in the middle of its work, or of handing it over.
for (const [engine, sim] of Object.entries({ sglang: { prefillTokensPerSecond: 10 }, vllm: { transferMs: 1_000 } })) {
  scenario(`${engine}: a prefill worker that dies does not take the decode worker with it`, async (s) => {
    const fleet = await Fleet.start(s, { engine, sim, config: { health: LONG_BACKOFF } });
    const { router } = fleet;
    await router.allUp();
    const [[prefill], [decode]] = [fleet.of('prefill'), fleet.of('decode')];
    const calls = Array.from({ length: 6 }, (_, i) => new Call(router.address, chat(`Request ${i} of a few`)));
    await until('all are in the middle of it', async () => (await decode.state()).requests === calls.length);
    await prefill.kill();
    await Promise.all(calls.map((call) => inTime('an answer', call.ended)));
    await Sim.again(s, () => Sim.start(s, { engine, role: 'prefill', port: prefill.address.split(':')[1], transferMs: 0 }));
    await servesAgain(router, ({ prefill: worker }) => worker === prefill.address);
  });
}

// What the router told the decode worker of it is out of date, and there is no other worker.
for (const handoff of ['nixl_push', 'mooncake']) {
  scenario(`${handoff}: a prefill worker that began anew serves the next request`, async (s) => {
    const flags = { engine: 'vllm', handoff, leaseMs: 600_000 };
    const ports = s.file('bootstrap');
    const first = { ...flags, role: 'prefill', ...(handoff === 'mooncake' ? { bootstrapReadyFile: ports } : {}) };
    const [prefill, decode] = await Promise.all([Sim.start(s, first), Sim.start(s, { ...flags, role: 'decode' })]);
    const fixed = handoff === 'mooncake' ? { bootstrapPort: (await readFile(ports, 'utf8')).trim().split(':')[1] } : {};
    const spec = ({ address }, role, more = {}) => ({ url: `http://${address}`, engine: 'vllm', role, handoff, ...more });
    const meet = fixed.bootstrapPort ? { bootstrap_port: Number(fixed.bootstrapPort) } : {};
    const workers = [spec(prefill, 'prefill', meet), spec(decode, 'decode')];
    const router = await Router.start(s, { threads: 1, models: [{ name: 'demo', workers }] });
    await router.allUp();
    for (let i = 0; i < 2; ++i) checkExact(await ask(router, chat(`Before ${i}`)), chat(`Before ${i}`));
    await prefill.kill();
    const next = await Sim.again(s, () => Sim.start(s, { ...first, ...fixed, port: prefill.address.split(':')[1] }));
    await router.allUp();
    for (let i = 0; i < 2; ++i) {
      const answer = await ask(router, chat(`After ${i}`));
      checkExact(answer, chat(`After ${i}`));
      assert.equal(servedBy(answer).prefill, next.address);
    }
    await until('nothing is pinned', async () => (await next.state()).pinned === 0);
  });
}

scenario('an engine that restarts while its sidecar does not look is announced as what it is now', async (s) => {
  const etcd = await Etcd.start(s);
  const [prefill, decode] = await Promise.all(['prefill', 'decode'].map((role) => Sim.start(s, { engine: 'sglang', role })));
  const router = await Router.start(s, { etcd: { endpoints: [etcd.url] }, models: [] });
  const [sidecar] = [prefill, decode].map((sim) =>
    Sidecar.start(s, etcd, sim.address, { engine: 'sglang', role: sim.role, ttl: '60s' }));
  for (const sim of [prefill, decode]) await router.untilState(sim, 'ready');
  s.after(() => sidecar.process.signal('SIGCONT')); // a paused process cannot be asked to end
  sidecar.process.signal('SIGSTOP');
  await prefill.kill();
  // At another bootstrap port than before.
  const next = await Sim.again(s, () => Sim.start(s, { engine: 'sglang', role: 'prefill', port: prefill.address.split(':')[1] }));
  sidecar.process.signal('SIGCONT');
  assert.equal((await servesAgain(router)).prefill, next.address);
});
