// SPDX-License-Identifier: Apache-2.0
// Eight workers of two ranks under prompts that share beginnings: whatever becomes of their events, at every quiet point
// Baton's index is what the engines' own tables say, and what it predicts of a prompt is what the engine reports.
import assert from 'node:assert/strict';

import { ask, chat, completion } from './support/ask.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { Audit, indexOf } from './support/kv_book.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const RANKS = 2;
// So few blocks that the traffic below does not fit.
const SMALL = { dpSize: RANKS, blocks: 72, decodeMs: 0, minOutput: 2, maxOutput: 12 };
const ENGINES = [
  { model: 'demo', role: 'prefill', engine: 'vllm', blockSize: 4 }, // events are maps
  { model: 'demo', role: 'decode', engine: 'vllm', blockSize: 4, kvEncoding: 'array', kvReplayFraming: 3 },
  { model: 'meet', role: 'prefill', engine: 'sglang', blockSize: 4 },
  { model: 'meet', role: 'decode', engine: 'sglang', blockSize: 4, decodeCache: 'on' },
  { model: 'solo', role: 'aggregated', engine: 'vllm', blockSize: 4, kvHash: 'bin', hostBlocks: 64 },
  { model: 'solo', role: 'aggregated', engine: 'vllm', blockSize: 8, blocks: 48, release: '0.23.0' },
  { model: 'solo', role: 'aggregated', engine: 'sglang', blockSize: 4, hostBlocks: 64 },
  { model: 'solo', role: 'aggregated', engine: 'sglang', blockSize: 8, blocks: 48 },
];
const MODELS = [...new Set(ENGINES.map(({ model }) => model))];

// xorshift: the same traffic in every run.
function dice(seed) {
  let state = seed;
  return (sides) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % sides;
  };
}
const roll = dice(20261115);

const SUBJECTS = ['the weather in the hills', 'how engines keep their caches', 'a hitherto unread book', 'why? '];
/** A prompt that shares its beginning, of any length, with others. */
function prompt(model) {
  const text = SUBJECTS[roll(SUBJECTS.length)].repeat(4).slice(0, 1 + roll(70)) + ' and so on'.slice(0, roll(10));
  const more = { model, max_tokens: 1 + roll(20), ...(roll(6) === 0 && { cache_salt: `tenant-${roll(2)}` }) };
  return roll(2) ? chat(text, more) : completion(text, more);
}

class Town {
  static async start(s, config = {}) {
    const town = new Town();
    town.s = s;
    const tokenizer = await writeTinyModel(s);
    town.engines = await Promise.all(
      ENGINES.map(async ({ model, ...flags }) => {
        const whole = { ...SMALL, tokenizer, model, ...flags };
        return { sim: await Sim.telling(s, whole), flags: whole, model, blockSize: flags.blockSize };
      }),
    );
    const workers = (name) =>
      town.engines
        .filter(({ model }) => model === name)
        .map(({ sim }) => ({ ...sim.worker(), data_parallel_size: RANKS, kv_events: sim.feed, kv_replay: sim.replay }));
    town.config = {
      kv_index: { prediction_ttl: '0s', ...config },
      models: MODELS.map((name) => ({ name, tokenizer, workers: workers(name) })),
    };
    town.router = await Router.start(s, town.config);
    for (const name of MODELS) await town.router.allUp(name);
    town.audit = new Audit(town.router, () => town.engines);
    return town;
  }

  get sims() {
    return this.engines.map(({ sim }) => sim);
  }

  /** So many requests to each model, some at once. */
  async traffic(requests = 12) {
    const senders = MODELS.flatMap((model) => [model, model]).map(async (model) => {
      for (let i = 0; i < requests / 2; ++i) {
        const answer = await ask(this.router, prompt(model));
        assert.equal(answer.status, 200, answer.raw);
      }
    });
    await Promise.all(senders);
    await this.quiet();
  }

  async quiet() {
    const fleet = Object.assign(new Fleet(), { sims: this.sims, router: this.router });
    await fleet.settle();
  }

  /** The index is right, now that nothing runs; traffic goes on where something that was lost must be noticed. */
  agrees(more = {}) {
    return this.audit.agrees({ nudge: () => this.traffic(MODELS.length), ...more });
  }

  /** Faults on the events of every engine, which all strike while there is traffic. */
  async strike(fault) {
    await Promise.all(this.sims.map((sim) => sim.fault(fault)));
    await until(`${fault.kind} struck everywhere`, async () => {
      await this.traffic(MODELS.length);
      return (await Promise.all(this.sims.map((sim) => sim.faults()))).every((left) => left.length === 0);
    });
  }

  /** One counter of all ranks, summed. */
  async sum(key) {
    return (await indexOf(this.router)).caches.reduce((total, cache) => total + cache[key], 0);
  }
}

const clear = ({ sim, flags }) =>
  request(sim.address, { path: flags.engine === 'sglang' ? '/flush_cache' : '/reset_prefix_cache' }).then(({ status, text }) =>
    assert.equal(status, 200, text));

scenario('the index is the union of the engines\' own tables', async (s) => {
  const town = await Town.start(s);
  const { router } = town;

  await s.step('under traffic and evictions', async () => {
    let before;
    let evicted = 0;
    let prompts = 0;
    for (let round = 0; round < 4; ++round) {
      await town.traffic(24);
      const { truth, prompts: looked } = await town.agrees();
      prompts += looked;
      for (const [i, { table }] of truth.entries()) {
        evicted += (before?.[i].table.hashes() ?? []).filter((hash) => !table.named.has(hash)).length;
      }
      before = truth;
    }
    assert.ok(prompts > 100 && evicted > 100, `${prompts} prompts looked up, ${evicted} blocks left`);
    const { blocks, memberships, caches } = await indexOf(router);
    assert.equal(caches.length, ENGINES.length * RANKS);
    assert.ok(caches.every(({ source, feed, state }) => source === 'events' && feed === 'live' && state === 'live'));
    assert.ok(blocks > 0 && memberships > blocks, 'some blocks are in several caches');
    assert.equal(await town.sum('lost'), 0);
    assert.deepEqual(router.logLines('kv_feed_wrong'), [], 'no worker was suspected');
  });

  await s.step('for a router that comes late', async () => {
    const late = await Router.start(s, town.config);
    const { truth } = await new Audit(late, () => town.engines).agrees();
    assert.ok(truth.every(({ next }) => next > 0), 'every rank had published by then');
  });

  await s.step('after dropped batches', async () => {
    const before = await town.sum('replayed');
    for (const count of [1, 3]) {
      await town.strike({ kind: 'kv_drop', count });
      await town.agrees();
    }
    assert.equal(await town.sum('lost'), 0, 'all were repeated');
    assert.ok((await town.sum('gaps')) > 0);
    assert.ok((await town.sum('replayed')) >= before + 4 * ENGINES.length);
  });

  await s.step('after duplicate stores and batches, and late ones', async () => {
    await town.strike({ kind: 'kv_duplicate_stores', count: 4 });
    await town.agrees();
    const before = await town.sum('duplicates');
    await town.strike({ kind: 'kv_duplicate', count: 4 });
    await town.agrees();
    await until('all were seen twice', async () => (await town.sum('duplicates')) === before + 4 * ENGINES.length);
    await town.strike({ kind: 'kv_delay', count: 2, delay_ms: 30 });
    await town.agrees();
  });

  await s.step('after clears', async () => {
    await Promise.all(town.engines.map(clear));
    const { truth } = await town.agrees();
    assert.ok(truth.every(({ table }) => table.hashes().length === 0), 'there is nothing left');
    assert.equal((await indexOf(router)).blocks, 0);
    await town.traffic();
    await town.agrees();
  });

  await s.step('after batches that cannot be repeated', async () => {
    await town.strike({ kind: 'kv_lose', count: 1 });
    const struck = await town.agrees({ lacking: () => true }).then(() => town.audit.told());
    const lost = struck.filter(({ lost: batches }) => batches > 0).map(({ holder }) => holder);
    assert.equal(lost.length, ENGINES.length, 'one rank of each engine lost one');
    await town.agrees({ lacking: (holder) => lost.includes(holder) }); // the others know all
    for (let round = 0; round < 2; ++round) {
      await town.traffic();
      await town.agrees({ lacking: (holder) => lost.includes(holder) });
    }
    await Promise.all(town.engines.map(clear));
    await town.traffic();
    await town.agrees();
  });

  await s.step('after restarts that only the numbers tell', async () => {
    const before = await town.sum('restarts');
    await Promise.all(town.sims.map((sim) => sim.fault({ kind: 'kv_restart' })));
    await town.traffic(24);
    await until('they were noticed', async () => (await town.sum('restarts')) >= before + ENGINES.length * RANKS);
    await town.agrees();
  });

  await s.step('after SIGKILL and a new process at the same ports', async () => {
    for (const at of [0, 4, 6]) {
      const { sim, flags } = town.engines[at];
      await sim.kill();
      const ports = { port: sim.address.split(':')[1], kvEvents: sim.feed, kvReplay: sim.replay };
      town.engines[at] = { ...town.engines[at], sim: await Sim.again(s, () => Sim.telling(s, { ...flags, ...ports })) };
    }
    await town.audit.agrees(); // before it has published anything: the old one's blocks are not believed
    for (const { sim } of town.engines) await router.untilState(sim, 'ready');
    await town.traffic();
    await town.agrees();
  });
});

scenario('what is predicted of a prompt is what the engine reports', async (s) => {
  const town = await Town.start(s);
  const { router } = town;
  // One request at a time, and all events of the last ones are read: there is nothing that Baton could not know.
  const askEach = async (look = () => {}) => {
    for (const model of MODELS) {
      const answer = await ask(router, prompt(model));
      assert.equal(answer.status, 200, answer.raw);
      look(answer, await router.requestLine(answer.headers['x-request-id']));
    }
    await town.quiet();
    await town.audit.caughtUp();
  };
  await until('every rank goes by its events', async () => {
    await askEach();
    return (await indexOf(router)).caches.every(({ sequence }) => sequence !== null);
  });
  const reportedBefore = await router.metric('baton_kv_reported_tokens');
  const predictedBefore = await router.metric('baton_kv_predicted_tokens');
  let cached = 0;
  for (let i = 0; i < 60; ++i) {
    await askEach((answer, line) => {
      const reported = answer.usage.prompt_tokens_details?.cached_tokens ?? 0;
      assert.equal(line.predicted_cached_tokens, reported, JSON.stringify(line));
      assert.equal(line.cached_tokens, reported);
      cached += reported;
    });
  }
  assert.ok(cached > 1_000, `${cached} tokens were cached`);
  assert.equal((await router.metric('baton_kv_reported_tokens')) - reportedBefore, cached);
  assert.equal((await router.metric('baton_kv_predicted_tokens')) - predictedBefore, cached);
});
