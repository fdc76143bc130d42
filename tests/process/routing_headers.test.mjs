// SPDX-License-Identifier: Apache-2.0
// Requests that say where they want to be served: honoured from those who may, refused with what to do about it where
// they cannot be meant, never passed on. And questions that are answered without sending anything.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { ask, chat, checkExact, checkRefused, completion, servedBy } from './support/ask.mjs';
import { Fleet } from './support/fleet.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const TRUSTING = { threads: 1, trust_routing_headers: true };
const THREE = { prefill: 3, decode: 3 };
const nameOf = (sim, i) => ({ id: `${sim.role[0]}${i}` });

/** Workers are called p0, p1, …, d0, d1, … and a0, a1, … */
async function startFleet(s, { config = TRUSTING, counts = THREE, more = () => ({}), ...options } = {}) {
  const worker = (sim, i) => ({ ...nameOf(sim, i), ...more(sim, i) });
  const fleet = await Fleet.start(s, { counts, config, worker, ...options });
  await fleet.router.allUp();
  return fleet;
}

/** Workers of an answer that must be exact. */
async function servers(fleet, body, headers) {
  const answer = await ask(fleet.router, body, headers);
  checkExact(answer, body);
  return servedBy(answer);
}

const requestsOf = async (fleet) => (await fleet.states()).reduce((sum, { requests }) => sum + requests, 0);

const refusalOf = async (fleet, body, headers, status = 400, code = 'invalid_routing') =>
  checkRefused(await ask(fleet.router, body, headers), status, code);

const FAMILIES = {
  'x-baton': ['x-baton-worker-instance-id', 'x-baton-prefill-instance-id', 'x-baton-dp-rank', 'x-baton-prefill-dp-rank'],
  'x-dynamo': ['x-dynamo-worker-instance-id', 'x-dynamo-prefill-instance-id', 'x-dynamo-dp-rank', 'x-dynamo-prefill-dp-rank'],
  legacy: ['x-worker-instance-id', 'x-prefill-instance-id', 'x-data-parallel-rank', 'x-prefill-dp-rank'],
};
const [WORKER, PREFILL, RANK, PREFILL_RANK] = FAMILIES['x-baton'];

describe('where a request is served', { concurrency: 3 }, () => {
  scenario('pins', async (s) => {
    const fleet = await startFleet(s);
    for (const [family, [worker, prefill]] of Object.entries(FAMILIES)) {
      await s.step(`by ${family} headers`, async () => {
        for (const stream of [false, true]) {
          for (const kind of [chat, completion]) {
            const body = kind(`Pinned by ${family}`, { stream });
            const headers = { [worker]: 'd2', [prefill]: 'p1' };
            assert.deepEqual(await servers(fleet, body, headers), { prefill: 'p1', decode: 'd2' });
          }
        }
      });
    }
    await s.step('by host:port', async () => {
      const [, second] = fleet.of('decode');
      const headers = { [WORKER]: second.address, [PREFILL]: fleet.of('prefill')[2].address };
      assert.deepEqual(await servers(fleet, chat('By address'), headers), { prefill: 'p2', decode: 'd1' });
    });
    await s.step('by nvext', async () => {
      const body = chat('By body', { nvext: { prefill_worker_id: 'p2', decode_worker_id: 'd0' } });
      assert.deepEqual(await servers(fleet, body), { prefill: 'p2', decode: 'd0' });
      const headers = { [WORKER]: 'd1' };
      assert.deepEqual(await servers(fleet, body, headers), { prefill: 'p2', decode: 'd1' }, 'a header wins');
    });
    await s.step('one that names the answering worker leaves prefill free', async () => {
      const prefills = new Set();
      for (let i = 0; i < 6; ++i) {
        const { prefill, decode } = await servers(fleet, chat(`Only decode ${i}`), { [WORKER]: 'd1' });
        assert.equal(decode, 'd1');
        prefills.add(prefill);
      }
      assert.equal(prefills.size, 3);
    });
    await s.step('nothing of it reaches the engines', async () => {
      for (const sim of fleet.sims) {
        for (const { headers, body } of await sim.legs()) {
          const text = JSON.stringify(headers).toLowerCase();
          for (const name of Object.values(FAMILIES).flat()) assert.ok(!text.includes(`"${name}"`), `${name} in ${text}`);
          assert.ok(!body.includes('nvext'), body);
        }
      }
      await fleet.settle();
    });
    await s.step('bad ones say what to do', async () => {
      const before = await requestsOf(fleet);
      const cases = [
        [{ [WORKER]: 'd9' }, {}, /no decode worker 'd9'/],
        [{ [WORKER]: 'd0', [PREFILL]: 'p9' }, {}, /no prefill worker 'p9'/],
        [{ [WORKER]: 'd0', [PREFILL]: 'd1' }, {}, /no prefill worker 'd1'/],
        [{ [WORKER]: 'd0', 'x-dynamo-worker-instance-id': 'd1' }, {}, /mean the same.*send one/],
        [{ [WORKER]: 'd0', [RANK]: '1' }, {}, /no rank 1; its ranks are 0 to 0/],
        [{ [WORKER]: 'd0', [RANK]: 'first' }, {}, /x-baton-dp-rank must be the number/],
        [{ [RANK]: '0' }, {}, /send x-baton-worker-instance-id with x-baton-dp-rank/],
        [{ [PREFILL_RANK]: '0' }, {}, /send x-baton-prefill-instance-id with x-baton-prefill-dp-rank/],
        [{ [WORKER]: 'd'.repeat(300) }, {}, /longer than 256 bytes/],
        [{}, { nvext: 7 }, /nvext must be an object/],
        [{}, { nvext: { decode_worker_id: ['d0'] } }, /nvext\.decode_worker_id must be a string or a whole number/],
        [{ [WORKER]: 'd0' }, { nvext: { allowed_worker_ids: ['d1', 'p0'] } }, /not one of the allowed workers/],
        [{ [WORKER]: 'd0', [PREFILL]: 'p0' }, { nvext: { routing_constraints: { required_taints: ['gold'] } } }, /required taint/],
      ];
      for (const [headers, more, what] of cases) {
        for (const stream of [false, true]) assert.match(await refusalOf(fleet, chat('Nowhere', { stream, ...more }), headers), what);
      }
      assert.equal(await requestsOf(fleet), before, 'nothing was sent');
    });
  });

  for (const engine of ['vllm', 'sglang']) {
    scenario(`${engine}: ranks`, async (s) => {
      const options = { engine, counts: { prefill: 2, decode: 2 }, sim: { dpSize: 4 }, more: () => ({ data_parallel_size: 4 }) };
      const fleet = await startFleet(s, options);
      const id = 'pinned-rank';
      const headers = { [WORKER]: 'd1', [RANK]: '3', [PREFILL]: 'p1', [PREFILL_RANK]: '2', 'X-Request-Id': id };
      assert.deepEqual(await servers(fleet, chat('At a rank'), headers), { prefill: 'p1', decode: 'd1' });
      const line = await fleet.router.requestLine(id);
      assert.deepEqual([line.prefill_rank, line.decode_rank], [2, 3]);
      assert.equal((await fleet.of('prefill')[1].legs()).at(-1).rank, 2);
      assert.equal((await fleet.of('decode')[1].legs()).at(-1).rank, 3);
      const before = await requestsOf(fleet);
      const without = { [WORKER]: 'd1', [PREFILL]: 'p1', [PREFILL_RANK]: '2' };
      assert.match(await refusalOf(fleet, chat('Which?'), without), /explicit dp rank; send x-baton-dp-rank/);
      const beyond = { ...headers, [PREFILL_RANK]: '4' };
      assert.match(await refusalOf(fleet, chat('Which?'), beyond), /no rank 4; its ranks are 0 to 3/);
      assert.equal(await requestsOf(fleet), before, 'nothing was sent');
      await fleet.settle();
    });
  }

  scenario('policy direct: an outer router names the workers', async (s) => {
    const options = { counts: { prefill: 2, decode: 2 }, worker: nameOf, model: { policy: 'direct' }, config: TRUSTING };
    const fleet = await Fleet.start(s, options);
    await fleet.router.ready();
    const both = { [WORKER]: 'd1', [PREFILL]: 'p0' };
    assert.deepEqual(await servers(fleet, chat('Named', { stream: true }), both), { prefill: 'p0', decode: 'd1' });
    const before = await requestsOf(fleet);
    assert.match(await refusalOf(fleet, chat('Unnamed')), /direct.*send x-baton-prefill-instance-id/);
    assert.match(await refusalOf(fleet, chat('Half named'), { [PREFILL]: 'p0' }), /direct.*send x-baton-worker-instance-id/);
    assert.equal(await requestsOf(fleet), before, 'nothing was sent');
    await fleet.settle();
  });

  scenario('allowed workers and taints', async (s) => {
    const more = (sim, i) => ({ taints: i === 0 ? ['plain'] : ['gold', `number-${i}`] });
    const fleet = await startFleet(s, { more });
    const many = async (nvext) => {
      const seen = { prefill: new Set(), decode: new Set() };
      for (let i = 0; i < 6; ++i) {
        const by = await servers(fleet, chat(`Constrained ${i}`, { nvext, stream: i % 2 === 0 }));
        for (const role of Object.keys(seen)) seen[role].add(by[role]);
      }
      return [[...seen.prefill].sort(), [...seen.decode].sort()];
    };
    await s.step('allowed', async () => {
      assert.deepEqual(await many({ allowed_worker_ids: ['p0', 'p2', 'd1'] }), [['p0', 'p2'], ['d1']]);
    });
    await s.step('required', async () => {
      const routing_constraints = { required_taints: ['gold'] };
      assert.deepEqual(await many({ routing_constraints }), [['p1', 'p2'], ['d1', 'd2']]);
    });
    await s.step('preferred', async () => {
      assert.deepEqual(await many({ routing_constraints: { preferred_taints: { 'number-2': 1 } } }), [['p2'], ['d2']]);
      const rather_not = { preferred_taints: { gold: -1 } };
      assert.deepEqual(await many({ routing_constraints: rather_not }), [['p0'], ['d0']]);
      const elsewhere = { preferred_taints: { platinum: 5 } };
      assert.deepEqual(await many({ routing_constraints: elsewhere }), [['p0', 'p1', 'p2'], ['d0', 'd1', 'd2']]);
    });
    await s.step('no worker fits', async () => {
      const before = await requestsOf(fleet);
      const cases = [
        [{ routing_constraints: { required_taints: ['platinum'] } }, /required taints: platinum/],
        [{ allowed_worker_ids: ['p0'] }, /allows/],
        [{ allowed_worker_ids: [] }, /allows no worker/],
      ];
      for (const [nvext, what] of cases) {
        assert.match(await refusalOf(fleet, chat('Too constrained', { nvext }), {}, 503, 'no_eligible_worker'), what);
      }
      assert.equal(await requestsOf(fleet), before, 'nothing was sent');
    });
    await fleet.settle();
  });

  const SOURCES = {
    'no client is trusted': [{}, false],
    'others are trusted': [{ trust_routing_headers: true, trusted_sources: ['10.0.0.0/8', 'fd00::/8'] }, false],
    'this source is trusted': [{ trust_routing_headers: true, trusted_sources: ['10.0.0.0/8', '127.0.0.0/8'] }, true],
  };
  for (const [name, [config, honoured]] of Object.entries(SOURCES)) {
    scenario(name, async (s) => {
      const fleet = await startFleet(s, { config: { threads: 1, ...config } });
      const pinned = { [WORKER]: 'd2', [PREFILL]: 'p2' };
      const seen = new Set();
      for (let i = 0; i < 3; ++i) {
        const { prefill, decode } = await servers(fleet, chat(`From here ${i}`, { nvext: { decode_worker_id: 'd2' } }), pinned);
        seen.add(`${prefill} ${decode}`);
      }
      assert.equal(seen.size, honoured ? 1 : 3, [...seen].join(', '));
      const nonsense = await ask(fleet.router, chat('Nonsense', { nvext: 7 }), { [WORKER]: 'nobody' });
      if (honoured) checkRefused(nonsense, 400, 'invalid_routing');
      else checkExact(nonsense, chat('Nonsense'));
      const query = chat('Who?', { nvext: { annotations: ['query_instance_id'] } });
      const asked = await ask(fleet.router, query).catch((error) => error);
      assert.equal(asked.raw?.includes('"object":"route"') ?? true, honoured);
      const legs = (await Promise.all(fleet.sims.map((sim) => sim.legs()))).flat();
      for (const { headers, body } of legs) assert.ok(!/instance-id|nvext/i.test(JSON.stringify(headers) + body));
    });
  }

  scenario('questions book nothing, send nothing and use up no turn', async (s) => {
    const fleet = await startFleet(s);
    const query = (body) => ({ ...body, nvext: { ...body.nvext, annotations: ['query_instance_id'] } });
    const askedByClient = async (body, headers) => {
      const client = fleet.router.client();
      return client.chat.completions.create(query(body), { headers });
    };
    const turns = [];
    for (let i = 0; i < 6; ++i) {
      const body = chat(`Turn ${i}`, { stream: i % 2 === 0 });
      await until('the turn before is over', async () => (await fleet.router.inFlight()) === 0);
      const before = await requestsOf(fleet);
      const routes = [];
      for (let j = 0; j < 5; ++j) routes.push(await askedByClient({ ...body, stream: false }), await fleet.router.route(body));
      assert.equal(await requestsOf(fleet), before, 'no worker was asked');
      assert.equal(await fleet.router.inFlight(), 0, 'nothing is booked');
      const said = new Set(routes.map(({ prefill, decode }) => `${prefill.worker} ${decode.worker}`));
      assert.equal(said.size, 1, `every answer is the same: ${[...said]}`);
      const { prefill, decode } = await servers(fleet, body);
      assert.deepEqual([...said], [`${prefill} ${decode}`], 'and it comes true');
      turns.push(prefill);
    }
    assert.deepEqual(turns.slice(0, 3).sort(), ['p0', 'p1', 'p2']);
    assert.deepEqual(turns.slice(3), turns.slice(0, 3), 'turn by turn');
    await s.step('it tells candidates, scores and why others are out', async () => {
      await until('nothing is booked', async () => (await fleet.router.inFlight()) === 0);
      const route = await fleet.router.route(chat('Why?'), { [WORKER]: 'd1' });
      assert.equal(route.status, 200);
      assert.equal(route.object, 'route');
      assert.equal(route.handoff, 'nixl_pull');
      assert.equal(route.decode.worker, 'd1');
      assert.equal(route.decode.candidates.length, 3);
      for (const { worker, why_not, score, load } of route.decode.candidates) {
        assert.equal(why_not === null, worker === 'd1', `${worker}: ${why_not}`);
        assert.ok(Number.isFinite(score) && load === 0);
      }
      const bad = await fleet.router.route(chat('Why?'), { [WORKER]: 'd9' });
      assert.equal(bad.status, 400);
      assert.equal(bad.error.code, 'invalid_routing');
    });
    await fleet.settle();
  });

  scenario('hand-off fields of clients', async (s) => {
    const stolen = {
      kv_transfer_params: { do_remote_prefill: true, remote_engine_id: 'x', remote_request_id: 'y', remote_block_ids: [[1]] },
      bootstrap_room: 5, bootstrap_host: '127.0.0.1', bootstrap_port: 1, disaggregated_params: { request_type: 'generation_only' },
    };
    await s.step('are stripped', async () => {
      const fleet = await startFleet(s, { counts: { prefill: 1, decode: 1 } });
      for (const [name, value] of Object.entries(stolen)) {
        const body = chat(`With ${name}`);
        checkExact(await ask(fleet.router, { ...body, [name]: value }), body);
        for (const sim of fleet.sims) {
          const leg = JSON.parse((await sim.legs()).at(-1).body);
          if (name !== 'kv_transfer_params') assert.ok(!(name in leg), `${name} reached ${sim.role}`);
          else assert.notEqual(leg.kv_transfer_params.remote_engine_id, 'x');
        }
      }
      await fleet.settle();
    });
    await s.step('are refused, by option', async () => {
      const fleet = await startFleet(s, { counts: { prefill: 1, decode: 1 }, config: { client_handoff_fields: 'refuse' } });
      for (const [name, value] of Object.entries(stolen)) {
        const answer = await ask(fleet.router, chat('Refused', { [name]: value }));
        assert.match(checkRefused(answer, 400, 'invalid_request'), new RegExp(`"${name}".*remove it`));
        assert.equal(answer.error.param, name);
      }
      assert.equal(await requestsOf(fleet), 0, 'nothing was sent');
      const body = chat('Without', { kv_transfer_params: null });
      checkExact(await ask(fleet.router, body), body);
    });
  });

  scenario('response headers can be switched off', async (s) => {
    for (const response_headers of [true, false]) {
      const fleet = await startFleet(s, { counts: { prefill: 1, decode: 1 }, config: { response_headers } });
      for (const stream of [false, true]) {
        const answer = await ask(fleet.router, chat('Who was it?', { stream }), { 'X-Request-Id': 'told' });
        const own = Object.keys(answer.headers).filter((name) => name.startsWith('x-baton-')).sort();
        const all = ['x-baton-decode-worker', 'x-baton-prefill-worker', 'x-baton-request-id'];
        assert.deepEqual(own, response_headers ? all : []);
        assert.equal(answer.headers['x-request-id'], 'told');
        if (response_headers) assert.equal(answer.headers['x-baton-request-id'], 'told');
      }
      await until('both legs are over', async () => (await fleet.router.inFlight()) === 0);
    }
  });
});
