// SPDX-License-Identifier: Apache-2.0
// A KV feed that says whatever bytes it likes: it costs what was known of its own worker, and nothing else.
import assert from 'node:assert/strict';

import { ask, completion } from './support/ask.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { matchesOf, untilCache } from './support/kv_book.mjs';
import { Publisher } from './support/kv_feed.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const BLOCK = 4;
const MEBI = 1 << 20;
const stored = (hashes, parent, tokens) =>
  ({ type: 'BlockStored', block_hashes: hashes, parent_block_hash: parent, token_ids: tokens, block_size: BLOCK, lora_id: null });

const hex = (text) => Buffer.from(text).toString('hex');
const short = (text) => (0xa0 + text.length).toString(16) + hex(text);
/** A batch of one event whose members are given as MessagePack in hexadecimal. */
const batch = (members) => {
  const map = Object.entries(members).map(([key, value]) => short(key) + value);
  return `92cb${'00'.repeat(8)}91${(0x80 + map.length).toString(16)}${map.join('')}`;
};
const one = (changes) =>
  batch({
    type: short('BlockStored'), block_hashes: '9101', parent_block_hash: 'c0', token_ids: '9401020304', block_size: '04', lora_id: 'c0', ...changes,
  });

/** What follows the number in a message. */
const PAYLOADS = {
  nothing: '',
  'four billion events': '92cb0000000000000000ddffffffff',
  'four billion members': 'dfffffffff',
  'a text of four gigabytes': 'dbffffffff',
  'bytes of four gigabytes': 'c6ffffffff',
  'a hundred thousand lists in one another': '91'.repeat(100_000),
  'an extension type': 'c7ff05',
  'a type that does not exist': 'c1',
  'a megabyte of nil': 'c0'.repeat(MEBI),
  'a number for a batch': '07',
  'a batch without events': '91cb0000000000000000',
  'events that are a map': '92cb000000000000000080',
  'a hash that is a map': one({ block_hashes: '9180' }),
  'a hash below zero': one({ block_hashes: '91d38000000000000000' }),
  'a hash of a kilobyte': one({ block_hashes: `91c50400${'ab'.repeat(1024)}` }),
  'tokens beyond every model': one({ token_ids: '94cfffffffffffffffff020304' }),
  'tokens below zero': one({ token_ids: '94ff020304' }),
  'tokens that are no numbers': one({ token_ids: '94cb7ff8000000000000c0c2a0' }),
  'no tokens': one({ token_ids: '90' }),
  'blocks of no size': one({ block_size: '00' }),
  'blocks of a negative size': one({ block_size: 'ff' }),
  'blocks of every size': one({ block_size: 'cfffffffffffffffff' }),
  'a parent of its own': one({ parent_block_hash: '01' }),
  'a type that is no text': one({ type: '91c0' }),
  'a medium that is no text': one({ medium: '05' }),
};
const FRAMES = {
  'no frame but the topic': ['00'],
  'twenty frames': Array(20).fill('00'),
  'a number of seven bytes': ['', '00'.repeat(7), '90'],
  'a topic of a megabyte': ['ab'.repeat(MEBI), '00'.repeat(8), '90'],
  'a payload of eight megabytes': ['', '00'.repeat(8), '00'.repeat(8 * MEBI)],
  'the last number there is': ['', 'ff'.repeat(8), '92cb000000000000000090'],
};

scenario('a feed whose messages are no messages', async (s) => {
  const [hostile, honest] = await Promise.all(
    [1, 2].map(async () => ({ sim: await Sim.start(s, { blockSize: BLOCK }), publisher: await Publisher.start(s) })),
  );
  const router = await Router.start(s, {
    kv_index: { prediction_ttl: '0s' },
    models: [{
      name: 'demo',
      tokenizer: await writeTinyModel(s),
      workers: [hostile, honest].map(({ sim, publisher }) => ({ ...sim.worker(), kv_events: publisher.events, kv_replay: publisher.replay })),
    }],
  });
  await router.allUp();
  const tokens = [1, 2, 3, 4, 5, 6, 7, 8];
  const holders = async () => (await matchesOf(router, tokens)).map(({ worker, blocks }) => `${worker} ${blocks.device}`).sort();
  const names = [hostile, honest].map(({ sim }) => `${sim.address} 2`).sort();
  for (const { publisher } of [hostile, honest]) await publisher.publish(stored([11, 12], null, tokens));
  await until('both are heard', async () => (await holders()).join() === names.join());

  // In the place of a batch, so that it is read and not asked for again.
  const strike = async (name, framesOf) => {
    await s.step(name, async () => {
      const { sequence } = await hostile.publisher.tell({ lose: [] });
      await hostile.publisher.tell({ frames: framesOf(sequence.toString(16).padStart(16, '0')) });
      const last = await hostile.publisher.publish(stored([21, 22], null, tokens));
      await untilCache(router, hostile.sim, 'what follows is read', (row) => row.sequence === last.sequence && row.feed === 'live');
      assert.ok((await holders()).includes(`${honest.sim.address} 2`), 'the other worker is known as before');
    });
  };
  for (const [name, frames] of Object.entries(FRAMES)) await strike(name, () => frames);
  for (const [name, payload] of Object.entries(PAYLOADS)) await strike(name, (number) => ['', number, payload]);

  await untilCache(router, hostile.sim, 'what cannot be read was counted', ({ malformed_batches: count }) => count > 10);
  const answer = await ask(router, completion(tokens, { max_tokens: 2 }));
  assert.equal(answer.status, 200, answer.raw);
  assert.equal(await router.metric('baton_escaped_exceptions_total'), 0);
});
