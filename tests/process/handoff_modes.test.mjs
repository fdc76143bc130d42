// SPDX-License-Identifier: Apache-2.0
// The hand-offs in which both legs run at once, and data-parallel ranks: exact answers, no worker left waiting for a
// partner that failed, nothing pinned.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { KINDS, ask, chat, checkExact, servedBy } from './support/ask.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { RawConnection, wire } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

// A decode worker without news waits for its partner as long as this.
const LEASE_MS = 20_000;
const AT_ONCE_MS = 5_000;

/** Each mode: flags of the simulators, keys of the worker in the configuration. */
const MODES = {
  'nixl_push, configured': { engine: 'vllm', handoff: 'nixl_push', configured: true },
  'nixl_push, learned': { engine: 'vllm', handoff: 'nixl_push' },
  mooncake: { engine: 'vllm', handoff: 'mooncake' },
  bootstrap: { engine: 'sglang', handoff: 'bootstrap' },
  generation_first: { engine: 'trtllm', handoff: 'generation_first' },
};

/** A simulator of a mode and how the configuration names it. */
async function startWorker(s, { engine, handoff, configured }, role, flags) {
  const number = s.processes.length;
  const bootstrapFile = s.file(`bootstrap-${number}`);
  const meets = role === 'prefill' && handoff === 'mooncake';
  const sim = await Sim.start(s, {
    engine, role, handoff, engineId: `engine-${number}`, leaseMs: LEASE_MS, tpSize: 2,
    ...(meets ? { bootstrapReadyFile: bootstrapFile } : {}), ...flags,
  });
  const worker = { ...sim.worker(), handoff };
  if (meets) worker.bootstrap_port = Number((await sim.process.address(bootstrapFile)).split(':').at(-1));
  if (configured && role === 'prefill') {
    worker.nixl = { engine_id: `engine-${number}`, side_channel: sim.address, tensor_parallel_size: 2 };
  }
  return [sim, worker];
}

async function startFleet(s, mode, counts, { flags = {}, model = {}, config = {}, worker: more = {} } = {}) {
  const fleet = new Fleet();
  const roles = Object.entries(counts).flatMap(([role, count]) => Array(count).fill(role));
  const started = [];
  for (const role of roles) started.push(await startWorker(s, mode, role, flags));
  fleet.sims = started.map(([sim]) => sim);
  const workers = started.map(([, worker]) => ({ ...worker, ...more }));
  // One thread, so that what is learned of a worker by one request is known to the next.
  fleet.router = await Router.start(s, {
    threads: 1, models: [{ name: 'demo', disaggregation: 'required', workers, ...model }], ...config,
  });
  await fleet.router.allUp();
  return fleet;
}

/** No request ran on a decode worker alone: everything it answered it had fetched. */
async function checkAllFetched(fleet, requests) {
  const states = await fleet.settle();
  const decodes = states.filter((_, i) => fleet.sims[i].role === 'decode');
  assert.equal(decodes.reduce((sum, { fetched }) => sum + fetched, 0), requests);
  for (const { recomputed, refused } of states) assert.equal(recomputed + refused, 0);
}

/** A decode leg of a push names no blocks: it was sent before they were known. The first of a worker may be pulled. */
async function checkPushed(fleet, { configured }) {
  const legs = (await Promise.all(fleet.of('decode').map((sim) => sim.legs()))).flat().map(({ body }) => JSON.parse(body));
  const pulled = legs.filter(({ kv_transfer_params: params }) => params.remote_block_ids !== undefined);
  assert.equal(pulled.length, configured ? 0 : fleet.of('prefill').length);
  assert.ok(legs.length > 2 * fleet.of('prefill').length);
}

const FAULTS = {
  'status 500': { kind: 'status', status: 500 },
  reset: { kind: 'reset' },
  refuse: { kind: 'refuse' },
};

async function timed(call) {
  const begin = Date.now();
  const answer = await call;
  return [answer, Date.now() - begin];
}

describe('hand-offs with both legs at once', { concurrency: 3 }, () => {
  for (const [name, mode] of Object.entries(MODES)) {
    scenario(`${name}: every answer is exact`, async (s) => {
      const fleet = await startFleet(s, mode, { prefill: 2, decode: 2 });
      let requests = 0;
      for (const [kind, make] of KINDS) {
        await s.step(kind, async () => {
          for (let i = 0; i < 4; ++i) {
            const body = make(`${name}, ${kind}, ${i}: ${'many words '.repeat(20)}`);
            const answer = await ask(fleet.router, body);
            checkExact(answer, body);
            assert.ok(servedBy(answer).prefill && servedBy(answer).decode, 'two workers served');
            ++requests;
          }
        });
      }
      await s.step('every cache was fetched, nothing is left', () => checkAllFetched(fleet, requests));
      if (mode.handoff === 'nixl_push') await s.step('blocks were pushed, not pulled', () => checkPushed(fleet, mode));
    });

    scenario(`${name}: a prefill that fails is told to the waiting decode at once`, async (s) => {
      const fleet = await startFleet(s, mode, { prefill: 1, decode: 1 }, { model: { retries: 0, disaggregation: 'required' } });
      const [prefill] = fleet.of('prefill');
      const warm = chat('Warm up');
      checkExact(await ask(fleet.router, warm), warm);
      for (const [fault, what] of Object.entries(FAULTS)) {
        for (const stream of [false, true]) {
          await s.step(`${fault}, ${stream ? 'streamed' : 'whole'}`, async () => {
            await prefill.fault(what);
            const [answer, took] = await timed(ask(fleet.router, chat(`Failing: ${fault}`, { stream }))).finally(() => prefill.clearFaults());
            assert.equal(answer.status, 502, answer.raw);
            assert.ok(['engine_failed', 'engine_unreachable'].includes(answer.error.code), answer.raw);
            assert.ok(took < AT_ONCE_MS, `told after ${took} ms`);
            await fleet.router.ready();
            const body = chat(`Afterwards: ${fault}`, { stream });
            checkExact(await ask(fleet.router, body), body);
          });
        }
      }
      await s.step('nothing is left', () => fleet.settle());
    });

    scenario(`${name}: with a second prefill worker the client sees only a good answer`, async (s) => {
      const fleet = await startFleet(s, mode, { prefill: 2, decode: 1 });
      const [bad, good] = fleet.of('prefill');
      for (const [fault, what] of Object.entries(FAULTS)) {
        await s.step(fault, async () => {
          await fleet.router.allUp();
          await bad.fault(what);
          for (let i = 0; i < 4; ++i) {
            const body = chat(`Saved from ${fault} ${i}`, { stream: i < 2 });
            const [answer, took] = await timed(ask(fleet.router, body));
            checkExact(answer, body);
            assert.equal(servedBy(answer).prefill, good.address);
            assert.ok(took < 2 * AT_ONCE_MS, `answered after ${took} ms`);
          }
          await bad.clearFaults();
        });
      }
      // A decode worker may be the first to see that its prefill worker is gone.
      await s.step('the only decode worker missed its prefill worker', async () => {
        await fleet.router.allUp();
        await fleet.of('decode')[0].fault({ kind: 'status', status: 500, count: 1 });
        const body = chat('Saved from a missed hand-off', { stream: true });
        checkExact(await ask(fleet.router, body), body);
      });
      await s.step('nothing is left', async () => {
        await fleet.settle();
        assert.ok((await fleet.router.metric('baton_retries_total')) >= 4);
      });
    });

    scenario(`${name}: a client that leaves mid-hand-off leaves nothing pinned`, async (s) => {
      // A push waits for its prefill as long as any leg may take.
      const grace = { timeouts: { handoff_grace: '500ms', first_byte: '3s' } };
      const fleet = await startFleet(s, mode, { prefill: 1, decode: 1 }, { flags: { decodeMs: 2, transferMs: 50 }, config: grace });
      const warm = chat('Warm up');
      checkExact(await ask(fleet.router, warm), warm);
      const moments = {
        'while prefill hangs': ['prefill', { kind: 'hang', count: 1 }],
        'while prefill is slow': ['prefill', { kind: 'slow', delay_ms: 200, count: 1 }],
        'while decode hangs': ['decode', { kind: 'hang', count: 1 }],
        'while decode works': ['decode', undefined],
      };
      // A push that its decode worker never scheduled is freed by the prefill worker's lease alone.
      if (mode.handoff === 'nixl_push') delete moments['while decode hangs'];
      for (const [moment, [role, fault]] of Object.entries(moments)) {
        for (const stream of [false, true]) {
          await s.step(`${moment}, ${stream ? 'streamed' : 'whole'}`, async () => {
            const [sim] = fleet.of(role);
            const { requests } = await sim.state();
            if (fault) await sim.fault(fault);
            const client = await RawConnection.open(fleet.router.address);
            client.write(wire('POST', '/v1/chat/completions', {}, JSON.stringify(chat(`Leaving ${moment}`, { stream }))));
            await until('the request arrived', async () => (await sim.state()).requests > requests);
            client.destroy();
            await fleet.settle();
            await sim.clearFaults();
          });
        }
      }
      const body = chat('Still there?');
      checkExact(await ask(fleet.router, body), body);
      await fleet.settle();
    });
  }
});

const RANKS = 4;
const RANKED = {
  vllm: { engine: 'vllm', handoff: 'nixl_pull' },
  'vllm, nixl_push': { engine: 'vllm', handoff: 'nixl_push' },
  'vllm, mooncake': { engine: 'vllm', handoff: 'mooncake' },
  sglang: { engine: 'sglang', handoff: 'bootstrap' },
};

/** Each leg of a request ran at the rank its log line names. */
async function checkRanks(fleet, id) {
  const line = await fleet.router.requestLine(id);
  const found = {};
  for (const sim of fleet.sims) {
    for (const leg of await sim.legs()) {
      const headers = JSON.stringify(leg.headers);
      // Workers that find each other by the id get it with a random end.
      if (headers.includes(`"${id}"`) || headers.includes(`"${id}-`)) (found[sim.role] ??= []).push({ ...leg, worker: sim.address });
    }
  }
  for (const role of ['prefill', 'decode']) {
    assert.equal(found[role]?.length, 1, `one ${role} leg of ${id}`);
    assert.equal(found[role][0].worker, line[`${role}_worker`]);
    assert.equal(found[role][0].rank, line[`${role}_rank`], `rank of the ${role} leg of ${id}`);
  }
  return { line, ...found };
}

describe('data-parallel ranks', { concurrency: 2 }, () => {
  for (const [name, mode] of Object.entries(RANKED)) {
    scenario(`${name}: every leg arrives at the rank the log names`, async (s) => {
      const fleet = await startFleet(s, mode, { prefill: 2, decode: 2 }, { flags: { dpSize: RANKS }, worker: { data_parallel_size: RANKS } });
      const used = { prefill: new Set(), decode: new Set() };
      for (let i = 0; i < 2 * 2 * RANKS; ++i) {
        const id = `ranked-${i}-end`;
        const body = chat(`Ranked ${i}`, { stream: i % 2 === 0 });
        checkExact(await ask(fleet.router, body, { 'X-Request-Id': id }), body);
        const { line, prefill } = await checkRanks(fleet, id);
        for (const role of Object.keys(used)) used[role].add(`${line[`${role}_worker`]}#${line[`${role}_rank`]}`);
        if (mode.engine !== 'sglang') continue;
        const room = BigInt(/"bootstrap_room"\s*:\s*(\d+)/.exec(prefill[0].body)[1]);
        assert.equal(room % BigInt(RANKS), BigInt(line.prefill_rank), 'the room belongs to the rank');
      }
      for (const [role, ranks] of Object.entries(used)) assert.equal(ranks.size, 2 * RANKS, `all ${role} ranks are used`);
      await checkAllFetched(fleet, 2 * 2 * RANKS);
    });
  }
});
