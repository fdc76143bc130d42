// SPDX-License-Identifier: Apache-2.0
// How what workers hold comes to be known: by events of every kind, by decisions where there are none, and what becomes of
// feeds that are silent, wrong or nonsense.
import assert from 'node:assert/strict';
import net from 'node:net';

import { ask, completion } from './support/ask.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { fetchText, request } from './support/http.mjs';
import { Audit, cacheOf, indexOf, matchesOf, untilCache } from './support/kv_book.mjs';
import { Publisher } from './support/kv_feed.mjs';
import { freePort } from './support/ports.mjs';
import { Process, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const BLOCK = 4;
const SMALL = { blockSize: BLOCK, blocks: 48, decodeMs: 0, minOutput: 2, maxOutput: 12 };

const range = (first, length) => Array.from({ length }, (_, i) => first + i);
const listening = (sim, more = {}) => ({ ...sim.worker(), kv_events: sim.feed, kv_replay: sim.replay, ...more });
const nameOf = ({ address }) => address;

/** Prompts are token ids, which only a router that tokenizes looks at. */
async function routerFor(s, workers, kvIndex = {}, more = {}) {
  const tokenizer = await writeTinyModel(s, { name: `model-${s.processes.length}` });
  const router = await Router.start(s, { kv_index: kvIndex, ...more, models: [{ name: 'demo', tokenizer, workers }] });
  await router.allUp();
  return router;
}

/** Through the router; returns what the engine says was cached. */
async function compute(router, tokens, more = {}) {
  const answer = await ask(router, completion(tokens, { max_tokens: 2, ...more }));
  assert.equal(answer.status, 200, answer.raw);
  return answer.usage.prompt_tokens_details?.cached_tokens ?? 0;
}

/** New prompts; the model knows 256 bytes. */
function freshPrompts(length = 9) {
  let next = 0;
  return (tokens = length) => [++next % 200, Math.floor(next / 200), ...range(0, tokens - 2).map((i) => i % 200)];
}

async function crowd(router, fresh, requests) {
  for (let i = 0; i < requests; ++i) await compute(router, fresh());
}

const quiet = (sims) =>
  until('the engines are at rest', async () =>
    (await Promise.all(sims.map((sim) => sim.state()))).every(({ running, waiting }) => running + waiting === 0));

/** What the router believes of one prompt at one worker. */
async function matchAt(router, sim, tokens) {
  const matches = await matchesOf(router, tokens);
  return matches.find(({ worker, rank }) => worker === nameOf(sim) && rank === 0);
}

const wanted = (row, key) => row.skipped[key] ?? 0;
const stored = (hashes, parent, tokens, more = {}) =>
  ({ type: 'BlockStored', block_hashes: hashes, parent_block_hash: parent, token_ids: tokens, block_size: BLOCK, lora_id: null, ...more });
const removed = (...hashes) => ({ type: 'BlockRemoved', block_hashes: hashes });

scenario('an independent publisher is read in both encodings and framings', async (s) => {
  const kinds = ['map', 'array'].flatMap((encoding) => ['old', 'new'].map((framing) => ({ encoding, framing })));
  const feeds = await Promise.all(
    kinds.map(async ({ encoding, framing }) => ({
      sim: await Sim.start(s, SMALL),
      publisher: await Publisher.start(s, ['--encoding', encoding, '--framing', framing]),
    })),
  );
  // Events published before the subscription are asked for.
  const tokens = range(1, 7 * BLOCK);
  const part = (first, count) => tokens.slice(first * BLOCK, (first + count) * BLOCK);
  const each = (work) => Promise.all(feeds.map(({ publisher }) => work(publisher)));
  await each((one) => one.publish(stored([11, 12, 13], null, part(0, 3))));
  const workers = feeds.map(({ sim, publisher }) => ({ ...sim.worker(), kv_events: publisher.events, kv_replay: publisher.replay }));
  const router = await routerFor(s, workers);
  const allHold = (blocks) => {
    let seen;
    return until(
      () => `all hold ${JSON.stringify(blocks)}: ${JSON.stringify(seen)}`,
      async () => {
        seen = await matchesOf(router, tokens);
        return seen.length === feeds.length &&
          seen.every((one) => Object.entries(blocks).every(([tier, count]) => one.blocks[tier] === count && one.source === 'events'));
      },
    );
  };
  // The blocks are there a moment before what is said of them.
  const all = async (check) => {
    for (const { sim } of feeds) {
      let problem;
      await untilCache(router, sim, () => `its row is right: ${problem}`, (row) => {
        try {
          check(row);
          return true;
        } catch (error) {
          problem = error.message;
          return false;
        }
      });
    }
  };
  await allHold({ device: 3, host: 3 });

  await s.step('live batches, and one that only a replay brings', async () => {
    await each((one) => one.publish(stored([14], 13, part(3, 1))));
    await allHold({ device: 4 });
    await each((one) => one.tell({ lose: [stored([15], 14, part(4, 1))] }));
    await each((one) => one.publish(stored([16], 15, part(5, 1))));
    await allHold({ device: 6 });
    await all(({ gaps, lost, replayed, sequence, state }) => {
      assert.deepEqual([gaps, lost, sequence, state], [1, 0, 3, 'live']);
      assert.ok(replayed >= 2, 'the first of all, and the one that was lost');
    });
  });

  await s.step('a batch that comes twice', async () => {
    await each((one) => one.tell({ repeat: true }));
    for (const { sim } of feeds) await untilCache(router, sim, 'it was seen', ({ duplicates }) => duplicates >= 1);
    await allHold({ device: 6 });
  });

  await s.step('odd events among good ones', async () => {
    await each((one) => one.publish(
      { type: 'BlockPolished', shine: 9 },
      { ...stored([17], 16, part(6, 1)), block_hashes: 'none' },
      stored([17], 16, part(6, 1)),
      stored([99], 98, range(900, BLOCK)),
      removed(1234),
    ));
    await allHold({ device: 7 });
    await all((row) => {
      assert.deepEqual([wanted(row, 'unknown_type'), wanted(row, 'malformed'), wanted(row, 'unknown_parent')], [1, 1, 1], JSON.stringify(row));
      assert.equal(row.malformed_batches, 0);
    });
  });

  await s.step('tiers', async () => {
    await each((one) => one.publish(stored([12], 11, part(1, 1), { medium: 'CPU' }), { ...removed(12), medium: 'GPU' }));
    await allHold({ device: 1, host: 7 });
    await all(({ blocks }) => assert.deepEqual(blocks, { device: 6, host: 1, disk: 0, external: 0 }));
  });

  await s.step('removals and clears', async () => {
    await each((one) => one.publish(removed(17), removed(16)));
    await allHold({ device: 1, host: 5 });
    await each((one) => one.publish({ type: 'AllBlocksCleared' }));
    await until('no worker holds anything', async () => (await matchesOf(router, tokens)).length === 0);
    assert.equal((await indexOf(router)).blocks, 0);
  });

  await s.step('messages that are no batches', async () => {
    const [{ sim, publisher }] = feeds;
    const frames = [['00'], ['', '0102', '90'], ['', '00'.repeat(8), '', '', '', ''], ['', 'ff'.repeat(9), 'c1']];
    for (const one of frames) await publisher.tell({ frames: one });
    await untilCache(router, sim, 'they were counted', ({ malformed_batches: count }) => count === frames.length);
    await each((one) => one.publish(stored([21], null, part(0, 1))));
    await allHold({ device: 1 });
  });
});

scenario('a worker without events is believed to keep what it was sent', async (s) => {
  const sim = await Sim.start(s, SMALL);
  const router = await routerFor(s, [{ ...sim.worker(), block_size: BLOCK }], { decision_ttl: '3s' });
  const prompt = range(100, 14);
  assert.deepEqual(await matchesOf(router, prompt), []);
  await compute(router, prompt);
  const match = await matchAt(router, sim, [...prompt.slice(0, 8), 1, 2, 3, 4]);
  const two = { device: 2, host: 2, disk: 2, external: 2 };
  assert.deepEqual([match.source, match.blocks, match.told], ['decisions', two, 0]);
  const { source, feed, way, endpoint, state, blocks } = await cacheOf(router, sim);
  assert.deepEqual([source, feed, way, endpoint, state], ['decisions', 'none', 'none', null, null]);
  assert.equal(blocks.device, 0);
  await until('it is not believed for ever', async () => (await matchesOf(router, prompt)).length === 0);

  // Unless only events count.
  const strict = await routerFor(s, [sim.worker()], { source: 'events' });
  await compute(strict, prompt);
  assert.deepEqual(await matchesOf(strict, prompt), []);
  assert.equal((await cacheOf(strict, sim)).source, 'nothing');
});

scenario('what was just sent is believed before its events come', async (s) => {
  const sim = await Sim.telling(s, SMALL);
  const router = await routerFor(s, [listening(sim)], { prediction_ttl: '10m' });
  const fresh = freshPrompts();
  await compute(router, fresh());
  await untilCache(router, sim, 'its events count', ({ source, blocks }) => source === 'events' && blocks.device === 2);
  await sim.fault({ kind: 'kv_delay', delay_ms: 600_000 });
  const prompt = fresh();
  await compute(router, prompt);
  const { blocks, told, source } = await matchAt(router, sim, prompt);
  assert.deepEqual([blocks.device, told, source], [2, 0, 'events']);
});

scenario('a feed that says nothing is found silent, and heard when it speaks again', async (s) => {
  for (const before of [0, 2]) {
    const sim = await Sim.telling(s, { ...SMALL, blocks: 4096 });
    const router = await routerFor(s, [listening(sim)], { silence: '1500ms', prediction_ttl: '0s' });
    const fresh = freshPrompts();
    await untilCache(router, sim, 'the engine was asked', ({ block_size: size }) => size === BLOCK);
    for (let i = 0; i < before; ++i) await compute(router, fresh());
    if (before) await untilCache(router, sim, 'its events count', ({ source }) => source === 'events');
    await sim.fault({ kind: 'kv_silence' });
    const prompt = fresh();
    await compute(router, prompt);
    await untilCache(router, sim, 'it is silent', ({ feed, source }) => feed === 'silent' && source === 'decisions');
    const [line, ...more] = await router.logged('kv_feed_down');
    assert.deepEqual([line.worker, line.rank, line.feed, line.goes_by, more], [nameOf(sim), 0, 'silent', 'decisions', []]);
    assert.equal(await router.metric('baton_kv_feeds', { state: 'silent' }), 1);
    // From now on it goes by what it sends there.
    const another = fresh();
    await compute(router, another);
    const { blocks, told, source } = await matchAt(router, sim, another);
    assert.deepEqual([blocks.device, told, source], [2, 0, 'decisions']);
    await sim.clearFaults();
    const third = fresh();
    await compute(router, third);
    await untilCache(router, sim, 'it speaks', ({ feed, source: whose }) => feed === 'live' && whose === 'events');
    assert.equal((await matchAt(router, sim, third)).told, 2);
    assert.ok((await router.logged('kv_feed_up')).length > 0);
    assert.equal(await matchAt(router, sim, another), undefined, 'its decisions are over');
  }
});

for (const kind of ['kv_lie', 'kv_scramble']) {
  scenario(`${kind}: a feed that is wrong counts for nothing until it is right again`, async (s) => {
    const sim = await Sim.telling(s, { ...SMALL, blocks: 4096 });
    const router = await routerFor(s, [listening(sim)], { prediction_ttl: '0s' });
    const fresh = freshPrompts();
    const prompts = range(0, 12).map(() => fresh());
    await compute(router, prompts[0]);
    await untilCache(router, sim, 'its events count', ({ source }) => source === 'events');

    await sim.fault({ kind });
    for (let round = 0; round < 5; ++round) {
      for (const prompt of prompts.slice(1, 4)) await compute(router, prompt);
      if (kind !== 'kv_lie') continue;
      // Blocks that were not announced yet are no sample.
      for (const prompt of prompts.slice(1, 4))
        await until('the lie is heard', async () => (await matchAt(router, sim, prompt))?.told === 2);
    }
    // Of the first round nothing can be learned. All else has to be judged before it can become right again.
    await untilCache(router, sim, 'it is found wrong', ({ believed, truth }) => !believed && truth.samples === 12);
    const [line, ...more] = await router.logged('kv_feed_wrong');
    assert.deepEqual([line.worker, line.rank, more], [nameOf(sim), 0, []]);
    assert.ok(line.wrong > 0.5);
    const { source, feed } = await cacheOf(router, sim);
    assert.deepEqual([source, feed], ['nothing', 'live']);
    const held = await matchAt(router, sim, prompts[0]);
    assert.deepEqual([held.blocks.device, held.cached_tokens, held.told, held.source], [0, 0, 2, 'nothing'], 'it publishes without a subscriber');
    assert.ok((await router.metric('baton_kv_feed_wrong_percent')) > 50);

    await sim.clearFaults();
    for (let i = 4; i < 12; ++i) await compute(router, prompts[i]); // afresh, and told as they are
    let asked = 0;
    await untilCache(router, sim, 'it is right again', async ({ believed }) => {
      if (!believed) await compute(router, prompts[4 + (asked++ % 8)]);
      return believed;
    });
    assert.equal((await router.logged('kv_feed_right_again')).length, 1);
    const once = await matchAt(router, sim, prompts[5]);
    assert.deepEqual([once.blocks.device, once.source], [2, 'events']);
  });
}

scenario('TensorRT-LLM is asked for its events', async (s) => {
  const sim = await Sim.start(s, { ...SMALL, engine: 'trtllm', kvBuffer: 32, dpSize: 2 });
  const router = await routerFor(s, [{ ...sim.worker(), data_parallel_size: 2 }], { prediction_ttl: '0s' });
  const fresh = freshPrompts(3 * BLOCK + 2);
  const audit = new Audit(router, () => [{ sim, model: 'demo', blockSize: BLOCK }]);
  const both = () => Promise.all([0, 1].map((rank) => cacheOf(router, sim, rank)));
  // A few at once, so that both ranks are used, and its ring has room for all between two questions.
  const some = async (prompts) => {
    await Promise.all(prompts.map((prompt) => compute(router, prompt)));
    await quiet([sim]);
  };
  await s.step('and they are its table', async () => {
    const prompts = range(0, 40).map(() => fresh());
    for (let i = 0; i < prompts.length; i += 4) {
      await some(prompts.slice(i, i + 4));
      await audit.comesToAgree();
    }
    for (const { way, source, feed, lost, blocks } of await both()) {
      assert.deepEqual([way, source, feed, lost], ['poll', 'events', 'live', 0]);
      assert.ok(blocks.device > 0);
    }
    // Which rank computes a prompt is the engine's own business, and no reason to doubt its word.
    for (let i = 0; i < 20; ++i) await compute(router, prompts.at(-1));
    assert.ok((await both()).every(({ believed }) => believed));
  });

  await s.step('also when its ring was too small', async () => {
    // More blocks leave at once than the ring has room for.
    await until('losses were noticed', async () => {
      await some([fresh(40 * BLOCK), fresh(40 * BLOCK)]);
      await some([fresh(), fresh(), fresh(), fresh()]);
      return (await both()).every(({ lost }) => lost > 0);
    });
    await audit.comesToAgree({ lacking: () => true });
  });

  await s.step('and when it is another one', async () => {
    await sim.fault({ kind: 'kv_restart' });
    await until('it was noticed', async () => (await both()).every(({ restarts }) => restarts === 1));
    await audit.comesToAgree();
    for (let i = 0; i < 4; ++i) {
      await some([fresh(), fresh(), fresh()]);
      await audit.comesToAgree();
    }
  });
});

scenario('SGLang is asked where its events are', async (s) => {
  const sim = await Sim.telling(s, { ...SMALL, engine: 'sglang', dpSize: 2 });
  const router = await routerFor(s, [{ ...sim.worker(), data_parallel_size: 2 }], { prediction_ttl: '0s' });
  const fresh = freshPrompts();
  for (const rank of [0, 1]) {
    await untilCache(router, sim, 'it speaks', async ({ source }) => {
      await compute(router, fresh());
      return source === 'events';
    }, rank);
  }
  const { endpoint, replay, way, block_size: size } = await cacheOf(router, sim);
  assert.deepEqual([endpoint, replay, way, size], [sim.feed, sim.replay, 'subscribe', BLOCK], 'and where they are repeated');
  await quiet([sim]);
  assert.equal((await request(sim.address, { path: '/flush_cache' })).status, 200);
  await crowd(router, fresh, 60);
  await quiet([sim]);
  const audit = new Audit(router, () => [{ sim, model: 'demo', blockSize: BLOCK }]);
  const { prompts } = await audit.agrees();
  assert.ok(prompts > 10);
});

scenario('a new engine behind a feed that cannot be asked for a replay', async (s) => {
  const flags = { ...SMALL, engine: 'sglang', release: '0.5.18' };
  let sim = await Sim.telling(s, flags);
  // The engine is not checked: only its feed shows that it is there.
  const router = await routerFor(s, [sim.worker()], { prediction_ttl: '0s' }, { health: { interval: '1h' } });
  const fresh = freshPrompts();
  let last;
  await untilCache(router, sim, 'it speaks', async ({ source }) => {
    last = fresh();
    await compute(router, last);
    return source === 'events';
  });
  // More than the new one can have told before it is heard: so its numbers cannot go on where these end.
  await crowd(router, fresh, 60);
  last = fresh();
  await compute(router, last);
  await untilCache(router, sim, 'its blocks are known', async () => (await matchAt(router, sim, last))?.cached_tokens === 2 * BLOCK);

  const { number } = await cacheOf(router, sim);
  await sim.kill();
  const doubted = ({ state, feed, source }) => state === 'unconfirmed' && feed === 'waiting' && source === 'decisions';
  await untilCache(router, sim, 'it is doubted', doubted);
  sim = await Sim.again(s, () => Sim.telling(s, { ...flags, port: sim.address.split(':')[1], kvEvents: sim.feed, kvReplay: sim.replay }));
  const after = await cacheOf(router, sim);
  assert.ok(doubted(after) && after.number === number, JSON.stringify(after));
  assert.equal((await matchAt(router, sim, last))?.cached_tokens ?? 0, 0, 'the old one\'s blocks are not believed');

  let looks = 0;
  await untilCache(router, sim, 'the new one is heard', async ({ source, restarts, lost }) => {
    if (looks++ % 20 === 0) await compute(router, fresh());
    return source === 'events' && restarts + lost > 0;
  });
  assert.equal((await matchAt(router, sim, last))?.told ?? 0, 0);
});

/** Writes bytes to a port and waits for the end of the connection. */
function shout(port, bytes) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.end(bytes));
    socket.on('close', resolve).on('error', () => {}).resume();
  });
}

scenario('engines that connect share a port of Baton\'s, and nonsense there does no harm', async (s) => {
  const port = await freePort();
  const llmD = {
    ...SMALL, release: '0.17.0', kvEvents: `tcp://127.0.0.1:${port}`, kvConnect: true, kvFirstSeq: 1,
    kvRootParent: 'zero', kvTopic: 'kv@{host}:{port}@{model}', kvReplayFraming: 4,
  };
  const sims = [await Sim.start(s, llmD), await Sim.start(s, llmD)];
  const router = await routerFor(s, sims.map((sim) => ({ ...sim.worker(), kv_events: `tcp://*:${port}` })), { prediction_ttl: '0s' });
  const fresh = freshPrompts();
  for (const sim of sims) {
    await untilCache(router, sim, 'it speaks', async ({ source }) => {
      await compute(router, fresh());
      return source === 'events';
    });
  }
  const noise = Buffer.from(range(0, 70_000).map((i) => (i * 2_654_435_761) >>> 24));
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', Buffer.alloc(64, 0xff), noise, '']) await shout(port, bytes);
  await quiet(sims);
  for (const sim of sims) assert.equal((await request(sim.address, { path: '/reset_prefix_cache' })).status, 200);
  await crowd(router, fresh, 60);
  await quiet(sims);
  const { prompts } = await new Audit(router, () => sims.map((sim) => ({ sim, model: 'demo', blockSize: BLOCK }))).agrees();
  assert.ok(prompts > 10);
  // An unknown worker.
  const stranger = await Publisher.start(s, ['--connect', `tcp://127.0.0.1:${port}`, '--topic', 'kv@10.9.8.7:1@demo']);
  await until('it was turned away', async () => {
    await stranger.publish(stored([1], null, range(1, BLOCK)));
    return router.logLines('feed_unroutable').length > 0;
  });
  assert.deepEqual(await matchesOf(router, range(1, BLOCK)), []);
});

scenario('garbage on a feed costs what was known, and nothing else', async (s) => {
  const sim = await Sim.telling(s, SMALL);
  const router = await routerFor(s, [listening(sim)], { prediction_ttl: '0s' });
  const fresh = freshPrompts();
  const audit = new Audit(router, () => [{ sim, model: 'demo', blockSize: BLOCK }]);
  const send = async (requests) => {
    await crowd(router, fresh, requests);
    await quiet([sim]);
  };
  await send(20);
  await audit.agrees();
  await sim.fault({ kind: 'kv_garbage', count: 1 });
  await send(1);
  await untilCache(router, sim, 'it was seen', ({ malformed_batches: count }) => count === 1);
  assert.equal((await router.logged('feed_unreadable')).length, 1);
  await send(8);
  await audit.agrees({ lacking: () => true });
  await untilCache(router, sim, 'it counts again', ({ source, feed }) => source === 'events' && feed === 'live');
  assert.equal((await request(sim.address, { path: '/reset_prefix_cache' })).status, 200);
  await send(20);
  await audit.agrees();
});

scenario('an engine that connects to the endpoint Baton connects to is named, and heard once it binds', async (s) => {
  const feed = `tcp://127.0.0.1:${await freePort()}`;
  const flags = { ...SMALL, kvEvents: feed };
  const sim = await Sim.start(s, { ...flags, kvConnect: true });
  const router = await routerFor(s, [{ ...sim.worker(), kv_events: feed }]);
  const { reason, source } = await untilCache(router, sim, 'it is unreachable', ({ feed: state }) => state === 'unreachable');
  assert.ok(reason.includes(`cannot connect to ${feed}`) && reason.includes('tcp://*:5557'), reason);
  assert.equal(source, 'decisions');
  const [line, ...more] = await router.logged('kv_feed_down');
  assert.deepEqual([line.worker, line.feed, line.reason, more], [nameOf(sim), 'unreachable', reason, []]);
  assert.equal(await router.metric('baton_kv_feeds', { state: 'unreachable' }), 1);
  const [worker] = JSON.parse(await fetchText(router.admin, '/workers')).workers;
  assert.deepEqual([worker.kv_cache.feed, worker.kv_cache.reason, worker.state], ['unreachable', reason, 'ready']);
  const table = s.adopt(new Process('workers', ['workers', '--admin', router.admin]));
  assert.equal((await table.ended()).code, 0);
  assert.match(table.stdout, /unreachable! +cannot connect to tcp:/);

  await sim.kill();
  const port = sim.address.split(':')[1];
  const bound = await Sim.again(s, () => Sim.start(s, { ...flags, port }));
  await untilCache(router, bound, 'it is connected', ({ feed: state, reason: why }) => state === 'waiting' && why === null);
  await router.allUp();
  const fresh = freshPrompts();
  await untilCache(router, bound, 'its events count', async ({ feed: state, source: by }) => {
    if (state !== 'live') await compute(router, fresh());
    return state === 'live' && by === 'events';
  });
});

scenario('a feed where no publisher is', async (s) => {
  const sim = await Sim.start(s, SMALL);
  const router = await routerFor(s, [{ ...sim.worker(), kv_events: `tcp://${sim.address}`, block_size: BLOCK }], { silence: '400ms' });
  const prompt = range(1, 9);
  await compute(router, prompt);
  assert.equal((await matchAt(router, sim, prompt)).source, 'decisions');
  await untilCache(router, sim, 'it is silent', ({ feed }) => feed === 'silent' || feed === 'broken');
  await until('it is logged', () => router.logLines('kv_feed_down').length === 1);
  assert.equal(await compute(router, prompt), 8, 'it serves as ever');
});
