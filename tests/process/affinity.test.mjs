// SPDX-License-Identifier: Apache-2.0
// Sessions stay with the workers that have their cache, for prefill and for decode, as long as those can serve.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { ask, chat, checkExact, checkRefused, servedBy } from './support/ask.mjs';
import { Fleet } from './support/fleet.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const COUNTS = { prefill: 3, decode: 3 };
const AFFINITY = { ttl: '10m' };
const SESSION = 'x-baton-session-id';
const nameOf = (sim, i) => ({ id: `${sim.role[0]}${i}` });

async function startFleet(s, { affinity = AFFINITY, config = {}, ...options } = {}) {
  const model = { disaggregation: 'required', affinity };
  const fleet = await Fleet.start(s, { counts: COUNTS, worker: nameOf, model, config, ...options });
  await fleet.router.allUp();
  return fleet;
}

let turn = 0;
/** The workers, as "p0 d1", of one more request of a session. */
async function serveOne(fleet, headers = {}, more = {}) {
  const body = chat(`Turn ${++turn}`, { stream: turn % 2 === 0, ...more });
  const answer = await ask(fleet.router, body, headers);
  checkExact(answer, body);
  const { prefill, decode } = servedBy(answer);
  return `${prefill} ${decode}`;
}

async function pairsOf(fleet, times, headers, more) {
  const pairs = new Set();
  for (let i = 0; i < times; ++i) pairs.add(await serveOne(fleet, headers, more));
  return [...pairs];
}

async function kill(sim) {
  sim.process.expectedExit = undefined;
  sim.process.signal('SIGKILL');
  await sim.process.ended();
}

describe('session affinity', { concurrency: 3 }, () => {
  scenario('a session sticks to its workers, others go round', async (s) => {
    const fleet = await startFleet(s);
    const sessions = ['one', 'two', 'three', 'four'];
    const first = {};
    for (const session of sessions) first[session] = await serveOne(fleet, { [SESSION]: session });
    assert.ok(new Set(Object.values(first)).size >= 3, 'sessions are spread');
    for (let round = 0; round < 3; ++round) {
      await serveOne(fleet); // turns the wheel
      for (const session of sessions) assert.equal(await serveOne(fleet, { [SESSION]: session }), first[session], session);
    }
    for (const session of sessions) {
      assert.deepEqual(await pairsOf(fleet, 2, { 'x-dynamo-session-id': session }), [first[session]]);
      const { prefill, decode } = await fleet.router.route(chat('Where to?'), { [SESSION]: session });
      assert.equal(`${prefill.worker} ${decode.worker}`, first[session], 'a question is told the same');
    }
    assert.ok((await pairsOf(fleet, 6)).length >= 3, 'requests without a session go round');
    await fleet.settle();
  });

  scenario('a session whose worker dies is bound anew, and stays there', async (s) => {
    const fleet = await startFleet(s);
    for (const role of ['prefill', 'decode']) {
      await s.step(role, async () => {
        const headers = { [SESSION]: `orphan of ${role}` };
        const at = (pair) => pair.split(' ')[role === 'prefill' ? 0 : 1];
        const other = (pair) => pair.split(' ')[role === 'prefill' ? 1 : 0];
        const before = await serveOne(fleet, headers);
        await kill(fleet.of(role)[Number(at(before)[1])]);
        const after = await serveOne(fleet, headers);
        assert.notEqual(at(after), at(before));
        if (role === 'decode') assert.ok(other(after), 'prefill serves on');
        const settled = await serveOne(fleet, headers);
        assert.equal(at(settled), at(after));
        assert.deepEqual(await pairsOf(fleet, 4, headers), [settled]);
      });
    }
  });

  scenario('a session served elsewhere than a pin says is refused', async (s) => {
    const fleet = await startFleet(s, { config: { threads: 1, trust_routing_headers: true } });
    const headers = { [SESSION]: 'torn' };
    const [prefill, decode] = (await serveOne(fleet, headers)).split(' ');
    const otherDecode = ['d0', 'd1', 'd2'].find((name) => name !== decode);
    const otherPrefill = ['p0', 'p1', 'p2'].find((name) => name !== prefill);
    const pinned = (name, worker) => ask(fleet.router, chat('Both?'), { ...headers, [name]: worker });
    const before = (await fleet.states()).reduce((sum, { requests }) => sum + requests, 0);
    const cases = [
      [await pinned('x-baton-prefill-instance-id', otherPrefill), prefill, 'x-baton-prefill-instance-id'],
      [await pinned('x-baton-worker-instance-id', otherDecode), decode, 'x-baton-worker-instance-id'],
    ];
    for (const [answer, bound, header] of cases) {
      const message = checkRefused(answer, 400, 'invalid_routing');
      assert.match(message, new RegExp(`session is served by '${bound}'; leave out ${header} or ${SESSION}`));
    }
    const after = (await fleet.states()).reduce((sum, { requests }) => sum + requests, 0);
    assert.equal(after, before, 'nothing was sent');
    const same = { ...headers, 'x-baton-worker-instance-id': decode, 'x-baton-prefill-instance-id': prefill };
    assert.equal(await serveOne(fleet, same), `${prefill} ${decode}`, 'a pin that agrees is fine');
    await fleet.settle();
  });

  scenario('body fields name the session only where that is configured', async (s) => {
    await s.step('configured', async () => {
      const fleet = await startFleet(s, { affinity: { ...AFFINITY, body_fields: ['session_id', 'user'] } });
      for (const more of [{ session_id: 'by-field' }, { user: 'somebody' }]) {
        assert.equal((await pairsOf(fleet, 5, {}, more)).length, 1, JSON.stringify(more));
        await serveOne(fleet);
      }
      const byHeader = await serveOne(fleet, { [SESSION]: 'of-header' });
      await serveOne(fleet);
      assert.deepEqual(await pairsOf(fleet, 3, { [SESSION]: 'of-header' }, { user: 'somebody' }), [byHeader], 'a header wins');
    });
    await s.step('not configured', async () => {
      const fleet = await startFleet(s);
      assert.ok((await pairsOf(fleet, 6, {}, { session_id: 'by-field', user: 'somebody' })).length >= 3);
    });
    await s.step('no affinity at all', async () => {
      const fleet = await Fleet.start(s, { counts: COUNTS, worker: nameOf });
      await fleet.router.allUp();
      assert.ok((await pairsOf(fleet, 6, { [SESSION]: 'nobody cares' })).length >= 3);
    });
  });

  scenario('sessions end: by their last request, or some time after it', async (s) => {
    const fleet = await startFleet(s, { affinity: { ttl: '300ms' } });
    const headers = { [SESSION]: 'short' };
    await s.step('told to be the last', async () => {
      const last = await serveOne(fleet, { ...headers, 'x-baton-session-final': 'true' });
      assert.notEqual(await serveOne(fleet, headers), last, 'bound anew');
    });
    await s.step('asked for true or false', async () => {
      const answer = await ask(fleet.router, chat('Final?'), { ...headers, 'x-baton-session-final': 'maybe' });
      assert.match(checkRefused(answer, 400, 'invalid_routing'), /x-baton-session-final must be true or false/);
    });
    await s.step('after its time', async () => {
      const bound = await serveOne(fleet, headers);
      // A question does not count as use; it tells when the session is forgotten.
      await until('the session is forgotten', async () => {
        const { prefill, decode } = await fleet.router.route(chat('Still?'), headers);
        return `${prefill.worker} ${decode.worker}` !== bound;
      });
    });
  });
});
