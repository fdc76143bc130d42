// SPDX-License-Identifier: Apache-2.0
// What sets blocks apart in an engine's cache and is in none of its events: no worker is believed to hold another's blocks.
import assert from 'node:assert/strict';

import { ask, completion } from './support/ask.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { indexOf, matchesOf, untilCache } from './support/kv_book.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const BLOCK = 4;
const SMALL = { blockSize: BLOCK, blocks: 64, decodeMs: 0, minOutput: 2, maxOutput: 12 };
const PROMPT = Array.from({ length: 13 }, (_, i) => 100 + i);
const WHOLE = 12; // of its tokens, that a cache can have

async function routerFor(s, sim, models = ['demo']) {
  const tokenizer = await writeTinyModel(s, { name: `model-${s.processes.length}` });
  const workers = [{ ...sim.worker(), kv_events: sim.feed, kv_replay: sim.replay }];
  const router = await Router.start(s, {
    kv_index: { prediction_ttl: '0s' },
    models: models.map((name) => ({ name, tokenizer, workers })),
  });
  for (const name of models) await router.allUp(name);
  return router;
}

/** Through the router: what the engine says was cached, and what Baton had predicted; undefined: nothing. */
async function compute(router, tokens, more = {}) {
  const answer = await ask(router, completion(tokens, { max_tokens: 2, ...more }));
  assert.equal(answer.status, 200, answer.raw);
  const { predicted_cached_tokens: predicted } = await router.requestLine(answer.headers['x-request-id']);
  return { reported: answer.usage.prompt_tokens_details?.cached_tokens ?? 0, predicted };
}

const believed = async (router, tokens, more) => (await matchesOf(router, tokens, more))[0]?.cached_tokens ?? 0;

/** The worker goes by its events, which know a first prompt. */
async function live(router, sim) {
  const first = [1, 2, 3, 4, 5];
  await untilCache(router, sim, 'it speaks', async ({ source }) => {
    await compute(router, first);
    return source === 'events' && (await believed(router, first)) === BLOCK;
  });
}

/** A prompt of one kind was computed: those of the other are not believed to be cached, and are not. */
async function staysApart(router, sim, hidden) {
  assert.deepEqual((await compute(router, PROMPT, hidden)).reported, 0);
  const row = await untilCache(router, sim, 'it goes by decisions', ({ feed, source }) => feed === 'mixed' && source === 'decisions');
  assert.equal(row.believed, true);
  assert.equal(await believed(router, PROMPT), 0);
  const plain = await compute(router, PROMPT);
  assert.deepEqual(plain, { reported: 0, predicted: undefined });
  assert.equal(await believed(router, PROMPT), WHOLE, 'it was sent there');
  assert.equal((await compute(router, PROMPT)).reported, WHOLE);
  assert.equal((await compute(router, PROMPT, hidden)).reported, WHOLE);
  assert.equal((await router.logged('kv_feed_down')).filter(({ feed }) => feed === 'mixed').length, 1, 'it is said, once');
  assert.deepEqual(router.logLines('kv_feed_wrong'), []);
}

for (const [engine, release] of [['sglang', '0.5.17'], ['vllm', '0.14.0']]) {
  scenario(`a salt that the events of ${engine} ${release} do not tell`, async (s) => {
    const sim = await Sim.telling(s, { ...SMALL, engine, release });
    const router = await routerFor(s, sim);
    await live(router, sim);
    await staysApart(router, sim, { cache_salt: 'tenant' });
  });
}

scenario('a key of SGLang\'s that no event tells', async (s) => {
  const sim = await Sim.telling(s, { ...SMALL, engine: 'sglang' });
  const router = await routerFor(s, sim);
  await live(router, sim);
  const salted = { cache_salt: 'tenant' };
  assert.equal((await compute(router, [...PROMPT].reverse(), salted)).reported, 0);
  await untilCache(router, sim, 'a salt is told', async ({ feed, source }) =>
    feed === 'live' && source === 'events' && (await believed(router, [...PROMPT].reverse(), { salt: 'tenant' })) === WHOLE);
  await staysApart(router, sim, { extra_key: 'team' });
});

scenario('an adapter that SGLang tells of', async (s) => {
  const sim = await Sim.telling(s, { ...SMALL, engine: 'sglang', lora: 'sql' });
  const router = await routerFor(s, sim, ['demo', 'demo:sql']);
  await until('both models go by events', async () => {
    const { caches } = await indexOf(router);
    return caches.length === 2 && caches.every(({ feed, source }) => feed === 'live' && source === 'events');
  });
  for (const model of ['demo:sql', 'demo']) {
    assert.equal(await believed(router, PROMPT, { model }), 0, model);
    assert.equal((await compute(router, PROMPT, { model })).reported, 0, model);
    await until(`its events tell ${model}`, async () => (await believed(router, PROMPT, { model })) === WHOLE);
    assert.equal((await compute(router, PROMPT, { model })).reported, WHOLE, model);
  }
});

scenario('an adapter of an older SGLang\'s', async (s) => {
  const sim = await Sim.telling(s, { ...SMALL, engine: 'sglang', release: '0.5.18', lora: 'sql' });
  const router = await routerFor(s, sim, ['demo', 'demo:sql']);
  await until('both models go by decisions from the beginning', async () => {
    const { caches } = await indexOf(router);
    const sizes = caches.map(({ feed, source, block_size: size }) => feed === 'mixed' && source === 'decisions' && size);
    return sizes.length === 2 && sizes.every((size) => size === BLOCK);
  });
  for (const model of ['demo:sql', 'demo']) {
    assert.equal(await believed(router, PROMPT, { model }), 0, model);
    assert.deepEqual(await compute(router, PROMPT, { model }), { reported: 0, predicted: undefined }, model);
    assert.equal(await believed(router, PROMPT, { model }), WHOLE, model);
    assert.equal((await compute(router, PROMPT, { model })).reported, WHOLE, model);
  }
});
