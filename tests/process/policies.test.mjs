// SPDX-License-Identifier: Apache-2.0
// Who gets the next request, by policy, for prefill and decode each on its own.
import assert from 'node:assert/strict';

import { Fleet } from './support/fleet.mjs';
import { RawConnection, readAnswer, request, wire } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const CHAT = '/v1/chat/completions';
const body = (stream, more = {}) =>
  JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'x' }], max_tokens: 2, stream, ...more });

async function ask(fleet) {
  const answer = readAnswer(await request(fleet.router.address, { path: CHAT, body: body(true) }));
  assert.ok(answer.done);
}

const counts = (fleet, role) => Promise.all(fleet.of(role).map(async (sim) => (await sim.state()).requests));

/** Index of the worker of each role that got each of `n` requests sent one after the other, beside others that run. */
async function sequence(fleet, role, n, running = 0) {
  const chosen = [];
  let before = await counts(fleet, role);
  for (let i = 0; i < n; ++i) {
    await ask(fleet);
    // The client has its last byte a moment before the router counts it as ended.
    await until('it counts no more', async () => (await fleet.router.inFlight()) === running);
    const after = await counts(fleet, role);
    chosen.push(after.findIndex((count, worker) => count > before[worker]));
    before = after;
  }
  return chosen;
}

scenario('round_robin alternates exactly, each role by itself', async (s) => {
  const fleet = await Fleet.start(s, { counts: { prefill: 2, decode: 3 }, model: { policy: 'round_robin' } });
  for (const [role, workers] of [['prefill', 2], ['decode', 3]]) {
    const chosen = await sequence(fleet, role, 4 * workers);
    chosen.forEach((worker, i) => assert.equal(worker, (chosen[0] + i) % workers, `${role}: ${chosen}`));
  }
});

scenario('least_loaded goes to the idle worker while another is busy', async (s) => {
  const fleet = await Fleet.start(s, { counts: { aggregated: 2 }, sim: { decodeMs: 20 }, model: { policy: 'least_loaded' } });
  const busy = await RawConnection.open(fleet.router.address);
  busy.write(wire('POST', CHAT, {}, body(true, { max_tokens: 100_000, ignore_eos: true })));
  assert.equal((await busy.head()).status, 200);
  const [first] = await counts(fleet, 'aggregated');
  const idle = first === 1 ? 1 : 0;
  assert.deepEqual(await sequence(fleet, 'aggregated', 6, 1), Array(6).fill(idle));
  busy.destroy();
  await fleet.settle();
});

for (const policy of ['random', 'power_of_two', 'least_loaded']) {
  scenario(`${policy} reaches every worker`, async (s) => {
    const fleet = await Fleet.start(s, { counts: { prefill: 3, decode: 3 }, model: { policy } });
    for (let round = 0; round < 10; ++round) await Promise.all(Array.from({ length: 8 }, () => ask(fleet)));
    for (const role of ['prefill', 'decode']) {
      for (const count of await counts(fleet, role)) assert.ok(count > 0, `${role}: ${await counts(fleet, role)}`);
    }
    await fleet.settle();
  });
}
