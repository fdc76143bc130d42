// SPDX-License-Identifier: Apache-2.0
// The simulator's KV events, read by Python's zmq and msgpack: what they say must be what the simulator has.
import assert from 'node:assert/strict';

import { Sim } from './support/fleet.mjs';
import { fetchText, request } from './support/http.mjs';
import { Follower, rankEndpoints, replay, tableOf, truthOf } from './support/kv_feed.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const BLOCK = 4;
const SMALL = { blockSize: BLOCK, blocks: 48, decodeMs: 0, minOutput: 2, maxOutput: 12 };

async function complete(sim, body, headers = {}) {
  const whole = { model: 'demo', max_tokens: 12, ...body };
  const answer = await request(sim.address, { path: '/v1/completions', headers, body: JSON.stringify(whole) });
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text);
}
const cachedOf = ({ usage }) => usage.prompt_tokens_details?.cached_tokens ?? 0;
const range = (first, length) => Array.from({ length }, (_, i) => first + i);

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

/** Prompts that share beginnings, more than the cache has room for. */
async function traffic(sim, requests = 60, seed = 7) {
  const roll = dice(seed);
  const bodies = range(0, requests).map(() => ({
    prompt: [...range(1000 * (1 + roll(6)), 1 + roll(40)), ...range(100 * roll(3), roll(12))],
    max_tokens: 1 + roll(20),
  }));
  const senders = range(0, 3).map(async (sender) => {
    for (let i = sender; i < bodies.length; i += 3) await complete(sim, bodies[i]);
  });
  await Promise.all(senders);
}

async function atRest(sim) {
  await until('the engine is at rest', async () => {
    const { running, waiting } = await sim.state();
    return running + waiting === 0;
  });
  return sim.blocks();
}

/** All batches of all ranks, from the replay sockets, make the engine's own tables. Returns them by rank. */
async function replayIsTruth(s, sim, ranks = 1) {
  const tables = await atRest(sim);
  assert.equal(tables.length, ranks);
  const all = await Promise.all(rankEndpoints(sim.replay, ranks).map((endpoint) => replay(s, endpoint)));
  all.forEach(({ batches }, rank) => {
    assert.deepEqual(batches.map(({ seq }) => seq), range(0, tables[rank].next_seq), 'every batch, in order');
    assert.ok(batches.every(({ batch }) => batch.rank === rank && Math.abs(batch.time - Date.now() / 1000) < 600));
    assert.ok(truthOf(tables[rank]).length > 0);
    assert.deepEqual(tableOf(batches), truthOf(tables[rank]));
  });
  return all;
}

const shapesOf = (batches, type) =>
  new Set(batches.flatMap(({ batch }) => batch.events).filter((event) => event.type === type).map(({ shape }) => shape));

const FORMATS = [
  { flags: { engine: 'vllm' }, frames: 4, stored: ['map 11'], removed: ['map 4'] },
  { flags: { engine: 'vllm', release: '0.25.0' }, frames: 3, stored: ['map 11'], removed: ['map 4'] },
  { flags: { engine: 'vllm', release: '0.23.0' }, frames: 3, stored: ['array 12'], removed: ['array 4'] },
  { flags: { engine: 'vllm', release: '0.11.0' }, frames: 3, stored: ['array 7'], removed: ['array 3'] },
  { flags: { engine: 'vllm', release: '0.9.2' }, frames: 3, stored: ['array 6'], removed: ['array 2'] },
  { flags: { engine: 'vllm', kvHash: 'bin', kvHashSeed: '42' }, frames: 4, stored: ['map 11 bin 32'], removed: ['map 4 bin 32'] },
  { flags: { engine: 'vllm', kvEncoding: 'array', kvReplayFraming: 3 }, frames: 3, stored: ['array 12'], removed: ['array 4'] },
  { flags: { engine: 'sglang' }, frames: 4, stored: ['map 7'], removed: ['map 3'] },
  { flags: { engine: 'sglang', release: '0.5.18' }, frames: 3, stored: ['array 7'], removed: ['array 3'] },
  { flags: { engine: 'sglang', release: '0.5.8', kvReplayFraming: 4 }, frames: 4, stored: ['array 6'], removed: ['array 2'] },
  { flags: { engine: 'trtllm' }, frames: 4, stored: ['map 8'], removed: ['map 3'] },
];

for (const { flags, frames, stored, removed } of FORMATS) {
  scenario(`replayed events are the cache: ${Object.values(flags).join(' ')}`, async (s) => {
    const sim = await Sim.telling(s, { ...SMALL, ...flags });
    await traffic(sim);
    const [{ batches, end }] = await replayIsTruth(s, sim);
    assert.ok(batches.every((one) => one.frames === frames));
    assert.equal(end.frames, frames);
    assert.deepEqual([...shapesOf(batches, 'BlockStored')], stored);
    assert.deepEqual([...shapesOf(batches, 'BlockRemoved')], removed, 'there were evictions');
    const state = await sim.state();
    assert.equal(state.kv_batches, batches.length);
    assert.equal(state.kv_events, batches.flatMap(({ batch }) => batch.events).length);
    const first = batches[0].batch.events[0].type;
    assert.equal(first, flags.engine === 'sglang' ? 'AllBlocksCleared' : 'BlockStored');
  });
}

scenario('ranks have feeds of their own on consecutive ports', async (s) => {
  for (const engine of ['vllm', 'sglang']) {
    const sim = await Sim.telling(s, { ...SMALL, engine, dpSize: 3 });
    await traffic(sim, 90);
    await replayIsTruth(s, sim, 3);
    if (engine === 'vllm') continue;
    const { kv_events: told } = JSON.parse(await fetchText(sim.address, '/server_info'));
    assert.equal(`tcp://${told.endpoint_host}:${told.endpoint_port_base}`, sim.feed);
    assert.deepEqual([told.publisher, told.topic, told.block_size, told.dp_size], ['zmq', '', BLOCK, 3]);
    assert.equal(`tcp://${told.endpoint_host}:${told.replay_endpoint_port_base}`, sim.replay);
  }
});

scenario('evicted blocks are told of in host memory', async (s) => {
  const feeds = [[{ engine: 'vllm' }, 'CPU'], [{ kvHostEvents: 'hashes' }, 'CPU'], [{ engine: 'sglang' }, 'CPU_PINNED']];
  for (const [flags, medium] of feeds) {
    const sim = await Sim.telling(s, { ...SMALL, ...flags, hostBlocks: 64 });
    await traffic(sim);
    const [{ batches }] = await replayIsTruth(s, sim);
    const media = new Set(batches.flatMap(({ batch }) => batch.events).map((event) => event.medium));
    assert.ok(media.has(medium) && media.has('GPU'));
  }
});

scenario('what the events say is what a request gets', async (s) => {
  const engines = [{ engine: 'vllm' }, { engine: 'sglang' }, { engine: 'trtllm' }, { hostBlocks: 64 }];
  for (const flags of engines) {
    const sim = await Sim.telling(s, { ...SMALL, ...flags });
    const roll = dice(99);
    let reused = 0;
    for (let i = 0; i < 20; ++i) {
      await traffic(sim, 6, 1 + i);
      await atRest(sim);
      const prompt = range(1000 * (1 + roll(6)), 1 + roll(44));
      const { batches } = await replay(s, sim.replay);
      const known = new Map(tableOf(batches).map((row) => row.split(' ')).map(([, hash, parent, tokens]) => [`${parent} ${tokens}`, hash]));
      let parent = 'null';
      let predicted = 0;
      for (let at = 0; at + BLOCK < prompt.length; at += BLOCK) {
        parent = known.get(`${parent} ${prompt.slice(at, at + BLOCK)}`);
        if (!parent) break;
        predicted += BLOCK;
      }
      assert.equal(cachedOf(await complete(sim, { prompt })), predicted, `${Object.values(flags)}, ${prompt.length} tokens`);
      reused += predicted;
    }
    assert.ok(reused > 0);
  }
});

scenario('live messages are the kept ones, with the topic in front', async (s) => {
  const sim = await Sim.telling(s, { ...SMALL, kvTopic: 'kv@{host}:{port}@{model}' });
  const follower = Follower.start(s, [sim.feed]);
  let next = 50_000;
  await follower.live(0, () => complete(sim, { prompt: range((next += 100), 8) }));
  await traffic(sim);
  const [{ next_seq: end }] = await atRest(sim);
  await follower.reaches(end - 1);
  const live = follower.messages();
  const { batches } = await replay(s, sim.replay, live[0].seq);
  assert.ok(live.every(({ topic }) => topic === `kv@${sim.address}@demo`));
  assert.deepEqual(live.map(({ seq, batch }) => [seq, batch]), batches.map(({ seq, batch }) => [seq, batch]));
});

scenario('it connects to a router that binds, as llm-d does', async (s) => {
  const follower = Follower.start(s, ['tcp://127.0.0.1:*'], { bind: true });
  const sim = await Sim.start(s, {
    ...SMALL, release: '0.17.0', kvEvents: await follower.bound(), kvConnect: true, kvFirstSeq: 1,
    kvRootParent: 'zero', kvTopic: 'kv@{host}:{port}@{model}',
  });
  let next = 50_000;
  await follower.live(0, () => complete(sim, { prompt: range((next += 100), 8) }));
  const [{ next_seq: end }] = await atRest(sim);
  await follower.reaches(end - 1);
  const [first] = follower.messages();
  assert.equal(first.topic, `kv@${sim.address}@demo`);
  assert.equal(first.batch.events[0].shape, 'array 9');
  assert.equal(first.batch.events[0].parent_block_hash, '0x0000000000000000');
});

scenario('a buffer that is too small loses the oldest batches', async (s) => {
  const sim = await Sim.telling(s, { ...SMALL, kvBuffer: 5 });
  await traffic(sim, 20);
  const [{ next_seq: end }] = await atRest(sim);
  const { batches } = await replay(s, sim.replay);
  assert.deepEqual(batches.map(({ seq }) => seq), range(end - 5, 5));
});

// Of the tokens 1 2 3 4 100 1000 70000 128000 behind PYTHONHASHSEED 42, from Python's hashlib over its pickle or over CBOR.
scenario("vLLM's hashes are of what --prefix-caching-hash-algo says", async (s) => {
  const expected = {
    sha256: ['0x0902fcecc2422367', '0x9f720a9bd4195433'],
    sha256_cbor: ['0x5319d4d1d84429df', '0x02dd2f3209f9ba45'],
  };
  for (const [algo, hashes] of Object.entries(expected)) {
    const sim = await Sim.telling(s, { ...SMALL, kvHashSeed: '42', prefixCachingHashAlgo: algo });
    await complete(sim, { prompt: [1, 2, 3, 4, 100, 1000, 70_000, 128_000, 5], max_tokens: 1 });
    await replayIsTruth(s, sim);
    const { batches } = await replay(s, sim.replay);
    assert.deepEqual(batches.flatMap(({ batch }) => batch.events).flatMap((event) => event.block_hashes), hashes);
  }
});

scenario('adapters and salts are told as the release tells them', async (s) => {
  const vllm = await Sim.telling(s, { ...SMALL, lora: 'sql' });
  const sglang = await Sim.telling(s, { ...SMALL, engine: 'sglang', lora: 'sql' });
  const older = await Sim.telling(s, { ...SMALL, engine: 'sglang', release: '0.5.18', lora: 'sql' });
  for (const sim of [vllm, sglang, older]) {
    const prompt = range(500, 9);
    await complete(sim, { prompt, max_tokens: 1 });
    await complete(sim, { prompt, max_tokens: 1, model: sim === vllm ? 'sql' : 'demo:sql' });
    await complete(sim, { prompt, max_tokens: 1, cache_salt: 'tenant' });
    assert.equal(cachedOf(await complete(sim, { prompt, max_tokens: 1, cache_salt: 'tenant' })), 8);
  }
  const storesOf = async (sim) => {
    await atRest(sim);
    const { batches } = await replay(s, sim.replay);
    return batches.flatMap(({ batch }) => batch.events).filter(({ type }) => type === 'BlockStored');
  };
  const [plain, adapter, salted] = await storesOf(vllm);
  assert.deepEqual([plain.lora_name, plain.extra_keys], [null, [null, null]]);
  assert.deepEqual([adapter.lora_id, adapter.lora_name, adapter.extra_keys], [1, 'sql', [['sql'], ['sql']]]);
  assert.deepEqual([salted.lora_name, salted.extra_keys], [null, [['tenant'], null]]);
  assert.equal(new Set([plain, adapter, salted].map((event) => event.block_hashes[1])).size, 3);

  const told = await storesOf(sglang);
  assert.deepEqual(told.map((event) => [event.lora_name, event.cache_salt]), [[undefined, undefined], ['sql', undefined], [undefined, 'tenant']]);
  assert.equal(new Set(told.map((event) => event.block_hashes[1])).size, 3);

  const hidden = await storesOf(older);
  assert.deepEqual(hidden[1].block_hashes, hidden[0].block_hashes, 'SGLang before 0.5.23 does not tell of adapters');
  assert.notDeepEqual(hidden[2].block_hashes, hidden[0].block_hashes);
  assert.deepEqual(hidden.map((event) => event.cache_salt), [undefined, undefined, 'tenant']);
});

scenario('faults break the feed as they are told to', async (s) => {
  const sim = await Sim.telling(s, { ...SMALL, blocks: 4096 });
  const follower = Follower.start(s, [sim.feed]);
  let next = 50_000;
  const ask = () => complete(sim, { prompt: range((next += 100), 8), max_tokens: 1 });
  await follower.live(0, ask);
  const nextSeq = async () => (await atRest(sim))[0].next_seq;
  const numbersFrom = (first) => follower.messages().map(({ seq }) => seq).filter((seq) => seq >= first);

  await s.step('dropped batches are kept, lost ones are not', async () => {
    const first = await nextSeq();
    await sim.fault({ kind: 'kv_drop', count: 2 });
    await ask();
    await ask();
    await sim.fault({ kind: 'kv_lose', count: 1 });
    await ask();
    await ask();
    await follower.reaches(first + 3);
    assert.deepEqual(numbersFrom(first), [first + 3]);
    const { batches } = await replay(s, sim.replay, first);
    assert.deepEqual(batches.map(({ seq }) => seq), [first, first + 1, first + 3]);
  });

  await s.step('batches and stores come twice', async () => {
    const first = await nextSeq();
    await sim.fault({ kind: 'kv_duplicate', count: 1 });
    await ask();
    await sim.fault({ kind: 'kv_duplicate_stores', count: 1 });
    await ask();
    await follower.reaches(first + 1);
    assert.deepEqual(numbersFrom(first), [first, first, first + 1]);
    const [one, two] = follower.messages().at(-1).batch.events;
    assert.deepEqual(one, two);
  });

  await s.step('garbage is no msgpack, and what it replaced is kept', async () => {
    const first = await nextSeq();
    await sim.fault({ kind: 'kv_garbage', count: 1 });
    await ask();
    await follower.reaches(first);
    assert.equal(follower.messages().at(-1).batch, null);
    const { batches } = await replay(s, sim.replay, first);
    assert.equal(batches[0].batch.events[0].type, 'BlockStored');
  });

  await s.step('a delayed batch comes, and before the next', async () => {
    const first = await nextSeq();
    await sim.fault({ kind: 'kv_delay', count: 1, delay_ms: 60 });
    await ask();
    await ask();
    await follower.reaches(first + 1);
    assert.deepEqual(numbersFrom(first), [first, first + 1]);
  });

  await s.step('silence does not even count', async () => {
    const first = await nextSeq();
    await sim.fault({ kind: 'kv_silence', count: 3 });
    for (let i = 0; i < 3; ++i) await ask();
    assert.equal(await nextSeq(), first);
    assert.equal((await sim.faults()).length, 0);
  });

  await s.step('a lie tells of blocks that are not there', async () => {
    const first = await nextSeq();
    await sim.fault({ kind: 'kv_lie', count: 1 });
    const prompt = range(90_000, 9);
    await complete(sim, { prompt, max_tokens: 1 });
    await follower.reaches(first);
    assert.deepEqual(follower.messages().at(-1).batch.events[0].token_ids, prompt.slice(0, 8));
    assert.equal(cachedOf(await complete(sim, { prompt, max_tokens: 1 })), 0);
    assert.equal(cachedOf(await complete(sim, { prompt, max_tokens: 1 })), 8);
  });

  await s.step('a reset is told, a restart is not', async () => {
    const first = await nextSeq();
    await request(sim.address, { method: 'POST', path: '/reset_prefix_cache' });
    await follower.reaches(first);
    assert.deepEqual(follower.messages().at(-1).batch.events.map(({ type }) => type), ['AllBlocksCleared']);
    await sim.fault({ kind: 'kv_restart' });
    assert.equal(await nextSeq(), 0);
    const before = follower.messages().length;
    await ask();
    await until('the first batch of a new life', () => follower.messages().length > before);
    assert.equal(follower.messages().at(-1).seq, 0);
    await replayIsTruth(s, sim);
  });
});

scenario('a killed engine comes back on the same ports and counts from the beginning', async (s) => {
  const sim = await Sim.telling(s, SMALL);
  await traffic(sim, 10);
  await sim.kill();
  const again = await Sim.again(s, () => Sim.telling(s, { ...SMALL, kvEvents: sim.feed, kvReplay: sim.replay }));
  assert.deepEqual((await again.blocks())[0], { rank: 0, next_seq: 0, blocks: [] });
  await traffic(again, 10);
  await replayIsTruth(s, again);
});

scenario('a decode worker of vLLM tells of what it received, one of SGLang has nothing to tell', async (s) => {
  const prompt = range(700, 21);
  const prefill = await Sim.telling(s, { ...SMALL, role: 'prefill' });
  const decode = await Sim.telling(s, { ...SMALL, role: 'decode' });
  const leg = await complete(prefill, {
    prompt, max_tokens: 1, kv_transfer_params: { do_remote_decode: true, do_remote_prefill: false },
  });
  await complete(decode, { prompt, max_tokens: 8, ignore_eos: true, kv_transfer_params: leg.kv_transfer_params });
  for (const sim of [prefill, decode]) await replayIsTruth(s, sim);
  const [table] = await decode.blocks();
  assert.equal(table.blocks.length, 7, 'of 28 tokens: the prompt and all but the last of the answer');

  const bootstrapReady = s.file('bootstrap');
  const meeting = await Sim.telling(s, { ...SMALL, engine: 'sglang', role: 'prefill', bootstrapReadyFile: bootstrapReady });
  const [host, port] = (await meeting.process.address(bootstrapReady)).split(':');
  for (const decodeCache of ['off', 'on']) {
    const sglang = await Sim.telling(s, { ...SMALL, engine: 'sglang', role: 'decode', ...(decodeCache === 'on' && { decodeCache }) });
    const room = decodeCache === 'on' ? 2 : 1;
    const body = { prompt, max_tokens: 8, bootstrap_host: host, bootstrap_port: Number(port), bootstrap_room: room };
    await Promise.all([complete(meeting, body), complete(sglang, body)]);
    if (decodeCache === 'on') await replayIsTruth(s, sglang);
    const [{ blocks }] = await atRest(sglang);
    assert.equal(blocks.length > 0, decodeCache === 'on');
  }
  await replayIsTruth(s, meeting);
});

scenario('TensorRT-LLM gives its events to any client that asks', async (s) => {
  const sim = await Sim.start(s, { ...SMALL, engine: 'trtllm', kvBuffer: 100_000, dpSize: 2 });
  const fetchEvents = async () => JSON.parse((await request(sim.address, { method: 'POST', path: '/kv_cache_events' })).text);
  const events = await fetchEvents();
  assert.deepEqual(events.map(({ data }) => data.type), ['created', 'created']);
  await traffic(sim, 60);
  const tables = await atRest(sim);
  events.push(...(await fetchEvents()));
  for (const rank of [0, 1]) {
    const mine = events.filter((event) => event.attention_dp_rank === rank);
    assert.deepEqual(mine.map(({ event_id: id }) => id), range(0, mine.length));
    const known = new Set();
    for (const { data } of mine) {
      for (const { block_hash: hash, tokens } of data.blocks ?? []) known.add(`${hash} ${tokens.map((one) => one.token_id)}`);
      for (const hash of data.block_hashes ?? []) {
        for (const row of known) if (row.startsWith(`${hash} `)) known.delete(row);
      }
    }
    // JSON numbers lose their last digits here, in the events as in the table.
    const truth = tables[rank].blocks.map(({ hash, tokens }) => `${Number(BigInt(hash))} ${tokens}`);
    assert.deepEqual([...known].sort(), truth.sort());
    assert.ok(mine.some(({ data }) => data.type === 'removed'));
    assert.ok(mine.some(({ data }) => data.blocks?.at(-1).tokens.length < BLOCK), 'partial blocks are told, too');
  }
  assert.deepEqual(await fetchEvents(), []);
});
