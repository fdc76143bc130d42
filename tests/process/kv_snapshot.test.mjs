// SPDX-License-Identifier: Apache-2.0
// A router that is started again takes up what it knew from its file: as far as the engines can confirm it, and no further.
import assert from 'node:assert/strict';

import { ask, completion } from './support/ask.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { Audit, cacheOf, matchesOf, untilCache } from './support/kv_book.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const BLOCK = 4;
// It repeats so few batches that only the file can know the rest.
const FLAGS = { blockSize: BLOCK, blocks: 512, decodeMs: 0, minOutput: 2, maxOutput: 4, kvBuffer: 6 };
const PROMPTS = 30;

const prompt = (number) => [number % 200, Math.floor(number / 200), ...Array.from({ length: 11 }, (_, i) => i)];

class Desk {
  static async start(s) {
    const desk = new Desk();
    desk.s = s;
    desk.sims = await Promise.all([Sim.telling(s, FLAGS), Sim.telling(s, FLAGS)]);
    const workers = desk.sims.map((sim) => ({ ...sim.worker(), kv_events: sim.feed, kv_replay: sim.replay }));
    const tokenizer = await writeTinyModel(s);
    desk.config = {
      log: { format: 'json', level: 'debug' },
      kv_index: { prediction_ttl: '0s', snapshot: s.file('kv.snapshot') },
      models: [{ name: 'demo', tokenizer, workers }],
    };
    await desk.open();
    return desk;
  }

  async open() {
    this.router = await Router.start(this.s, this.config);
    await this.router.allUp();
    this.audit = new Audit(this.router, () => this.sims.map((sim) => ({ sim, model: 'demo', blockSize: BLOCK })));
  }

  /** Ends the router as an operator does. */
  async close() {
    assert.equal(await this.router.process.finish(), undefined);
    assert.ok((await this.router.logged('kv_snapshot_written')).length > 0);
  }

  async compute(numbers) {
    for (const number of numbers) {
      const answer = await ask(this.router, completion(prompt(number), { max_tokens: 2 }));
      assert.equal(answer.status, 200, answer.raw);
    }
    await this.rest();
  }

  async rest() {
    await until('the engines are at rest', async () =>
      (await Promise.all(this.sims.map((sim) => sim.state()))).every(({ running, waiting }) => running + waiting === 0));
  }
}

scenario('what a router knew, the next one knows', async (s) => {
  const desk = await Desk.start(s);
  // Engines repeat little, so nothing much is to be published before the subscription.
  let looks = 0;
  for (const sim of desk.sims) {
    await untilCache(desk.router, sim, 'it is heard', async ({ source }) => {
      if (source !== 'events' && looks++ % 20 === 0) await desk.compute([500 + looks, 600 + looks]);
      return source === 'events';
    });
  }
  await desk.compute(Array.from({ length: PROMPTS }, (_, i) => i));
  const { prompts } = await desk.audit.agrees();
  assert.ok(prompts >= PROMPTS);
  await desk.close();

  await s.step('also what engines told meanwhile, as far as they can repeat it', async () => {
    const [sim] = desk.sims;
    const body = JSON.stringify({ model: 'demo', prompt: prompt(PROMPTS), max_tokens: 2 });
    assert.equal((await request(sim.address, { path: '/v1/completions', body })).status, 200);
    await desk.rest();
    await desk.open();
    const { prompts: known } = await desk.audit.agrees();
    assert.equal(known, prompts + 1);
    const [read] = await desk.router.logged('kv_snapshot_read');
    assert.equal(read.holders, 2);
    for (const one of desk.sims) {
      const row = await cacheOf(desk.router, one);
      assert.deepEqual([row.source, row.restarts, row.lost], ['events', 0, 0]);
      assert.ok(row.batches < PROMPTS / 2, `few batches were read: ${row.batches}`);
    }
    await desk.close();
  });

  await s.step('but nothing of an engine that is another one now', async () => {
    const [old, kept] = desk.sims;
    await old.kill();
    const ports = { port: old.address.split(':')[1], kvEvents: old.feed, kvReplay: old.replay };
    const fresh = await Sim.again(s, () => Sim.telling(s, { ...FLAGS, ...ports }));
    desk.sims = [fresh, kept];
    await desk.open();
    await untilCache(desk.router, fresh, 'it is known to be another one', ({ restarts, blocks }) => restarts === 1 && blocks.device === 0);
    await untilCache(desk.router, kept, 'the other is confirmed', ({ source }) => source === 'events');
    for (let number = 0; number <= PROMPTS; ++number) {
      for (const { worker } of await matchesOf(desk.router, prompt(number))) assert.equal(worker, kept.address);
    }
    await desk.compute([1_000, 1_001, 1_002, 1_003]);
    await desk.audit.agrees();
  });
});
