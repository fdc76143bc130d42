// SPDX-License-Identifier: Apache-2.0
// KV caches stay in the domain their prefill worker names, or rather stay there; where that cannot be, nothing is sent.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { ask, chat, checkExact, checkRefused, servedBy } from './support/ask.mjs';
import { ENGINES, Fleet } from './support/fleet.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const COUNTS = { prefill: 2, decode: 4 };
const ROUNDS = 12;

/** Workers p0, d0, d2 are in rack r0; p1, d1, d3 in rack r1. */
const placed = (domain) => (sim, i) => ({
  id: `${sim.role[0]}${i}`,
  topology: ['zone=a', `rack=r${i % 2}`],
  ...(sim.role === 'prefill' ? domain : {}),
});

const REQUIRED = { transfer_domain: 'rack' };
const PREFERRED = { transfer_domain: 'rack', transfer_enforcement: 'preferred', transfer_weight: 2 };
const rackOf = (name) => Number(name[1]) % 2;

async function startFleet(s, domain, options = {}) {
  const config = { threads: 1, trust_routing_headers: true };
  const fleet = await Fleet.start(s, { counts: COUNTS, worker: placed(domain), config, ...options });
  await fleet.router.allUp();
  return fleet;
}

async function serveOne(fleet, i, headers = {}) {
  const body = chat(`Near ${i}`, { stream: i % 2 === 0 });
  const answer = await ask(fleet.router, body, headers);
  checkExact(answer, body);
  return servedBy(answer);
}

async function kill(sim) {
  sim.process.expectedExit = undefined;
  sim.process.signal('SIGKILL');
  await sim.process.ended();
}

describe('transfer domains', { concurrency: 3 }, () => {
  for (const engine of ENGINES) {
    scenario(`${engine}, required: prefill and decode share their rack`, async (s) => {
      const fleet = await startFleet(s, REQUIRED, { engine });
      const used = { prefill: new Set(), decode: new Set() };
      for (let i = 0; i < ROUNDS; ++i) {
        const { prefill, decode } = await serveOne(fleet, i);
        assert.equal(rackOf(decode), rackOf(prefill), `${prefill} to ${decode}`);
        used.prefill.add(prefill);
        used.decode.add(decode);
      }
      assert.deepEqual([used.prefill.size, used.decode.size], [2, 4], 'every worker works');
      await fleet.settle();
    });
  }

  scenario('without a domain caches cross racks', async (s) => {
    const fleet = await startFleet(s, {});
    const crossed = [];
    for (let i = 0; i < 4; ++i) {
      const headers = { 'x-baton-prefill-instance-id': 'p0', 'x-baton-worker-instance-id': `d${i}` };
      crossed.push(await serveOne(fleet, i, headers));
    }
    assert.ok(crossed.some(({ prefill, decode }) => rackOf(prefill) !== rackOf(decode)));
  });

  scenario('required: impossible is told before anything is sent', async (s) => {
    const worker = (sim, i) => ({ ...placed(REQUIRED)(sim, i), ...(sim.role === 'decode' ? { topology: ['rack=r9'] } : {}) });
    const fleet = await Fleet.start(s, { counts: COUNTS, worker, config: { threads: 1, trust_routing_headers: true } });
    await fleet.router.ready();
    for (const stream of [false, true]) {
      const message = checkRefused(await ask(fleet.router, chat('Too far', { stream })), 503, 'no_eligible_worker');
      assert.match(message, /rack=r[01]/);
    }
    for (const { requests } of await fleet.states()) assert.equal(requests, 0, 'no worker was asked');
    await until('nothing is in flight', async () => (await fleet.router.inFlight()) === 0);
  });

  scenario('required: a pin across racks is refused', async (s) => {
    const fleet = await startFleet(s, REQUIRED);
    const headers = { 'x-baton-prefill-instance-id': 'p0', 'x-baton-worker-instance-id': 'd1' };
    const message = checkRefused(await ask(fleet.router, chat('Across'), headers), 400, 'invalid_routing');
    assert.match(message, /d1.*rack=r0/);
    for (const { requests } of await fleet.states()) assert.equal(requests, 0, 'no worker was asked');
  });

  scenario('required: a prefill worker without a decode worker near it is passed over', async (s) => {
    const worker = (sim, i) => ({ ...placed(REQUIRED)(sim, i), ...(sim.role === 'decode' ? { topology: ['rack=r1'] } : {}) });
    const fleet = await Fleet.start(s, { counts: COUNTS, worker });
    await fleet.router.allUp();
    for (let i = 0; i < 6; ++i) assert.equal((await serveOne(fleet, i)).prefill, 'p1');
    assert.equal((await fleet.of('prefill')[0].state()).requests, 0);
    await fleet.settle();
  });

  scenario('preferred: near while a worker is near, far otherwise', async (s) => {
    const fleet = await startFleet(s, PREFERRED);
    for (let i = 0; i < ROUNDS; ++i) {
      const { prefill, decode } = await serveOne(fleet, i);
      assert.equal(rackOf(decode), rackOf(prefill), `${prefill} to ${decode}`);
    }
    for (const i of [0, 2]) await kill(fleet.of('decode')[i]);
    for (let i = 0; i < ROUNDS; ++i) assert.equal(rackOf((await serveOne(fleet, i)).decode), 1, 'the other rack serves both');
  });
});
