// SPDX-License-Identifier: Apache-2.0
// What Baton believes of the workers' KV caches, held against the simulated engines' own tables of blocks.
import assert from 'node:assert/strict';

import { fetchText, request } from './http.mjs';
import { until } from './process.mjs';

const TIERS = { GPU: 'device', CPU: 'host' };
const NOWHERE = { device: 0, host: 0, disk: 0, external: 0 };

const byHolder = (a, b) => (a.holder < b.holder ? -1 : 1);

/** GET /v1/index of a router: {blocks, memberships, caches, …}. */
export async function indexOf({ admin }) {
  return JSON.parse(await fetchText(admin, '/v1/index'));
}

/** Its row of one rank of an engine. */
export async function cacheOf(router, { address }, rank = 0) {
  const { caches } = await indexOf(router);
  const found = caches.find((one) => one.url === `http://${address}` && one.rank === rank);
  assert.ok(found, `rank ${rank} of ${address} is in the index`);
  return found;
}

/** Waits until that row is as wanted; returns it. */
export async function untilCache(router, sim, what, wanted, rank = 0) {
  let seen;
  return until(
    () => `${typeof what === 'function' ? what() : what}; last seen ${JSON.stringify(seen)}`,
    async () => {
      seen = await cacheOf(router, sim, rank);
      return (await wanted(seen)) && seen;
    },
  );
}

/** POST /v1/index/match: who holds the beginning of these tokens. */
export async function matchesOf({ admin }, tokens, { model = 'demo', salt } = {}) {
  const body = JSON.stringify({ model, tokens, ...(salt && { cache_salt: salt }) });
  const answer = await request(admin, { path: '/v1/index/match', body });
  assert.equal(answer.status, 200, answer.text);
  const { matches } = JSON.parse(answer.text);
  return matches;
}

/** The prefix cache of one rank, as the simulator tells it. */
class Table {
  constructor({ blocks }, blockSize) {
    this.blockSize = blockSize;
    this.named = new Map(); // by hash
    this.next = new Map(); // by predecessor, salt and tokens: the hash
    this.counts = { ...NOWHERE };
    for (const { hash, parent, tokens, tier, salt = '' } of blocks) {
      if (tokens.length < blockSize) continue; // the incomplete ends of TensorRT-LLM's
      ++this.counts[TIERS[tier]];
      const known = this.named.get(hash) ?? { hash, parent, tokens, salt, tiers: new Set() };
      known.tiers.add(TIERS[tier]);
      this.named.set(hash, known);
      this.next.set(`${parent} ${salt} ${tokens}`, known);
    }
  }

  /** How far it holds these tokens from their beginning. */
  prefix(tokens, salt) {
    const held = { device: 0, host: 0 };
    let parent = null;
    let onDevice = true;
    for (let at = 0; at + this.blockSize <= tokens.length; at += this.blockSize) {
      const block = this.next.get(`${parent} ${salt} ${tokens.slice(at, at + this.blockSize)}`);
      if (!block) break;
      onDevice &&= block.tiers.has('device');
      if (onDevice) ++held.device;
      ++held.host;
      parent = block.hash;
    }
    return { ...held, disk: held.host, external: held.host };
  }

  /** Every longest prompt that it holds from its beginning: [{tokens, salt}]. */
  chains() {
    const parents = new Set([...this.named.values()].map(({ parent }) => parent));
    const chains = [];
    for (const leaf of this.named.values()) {
      if (parents.has(leaf.hash)) continue;
      const tokens = [];
      let block = leaf;
      for (; block; block = this.named.get(block.parent)) {
        tokens.unshift(...block.tokens);
        if (block.parent === null) break;
      }
      if (block) chains.push({ tokens, salt: leaf.salt }); // else its beginning has left the cache
    }
    return chains;
  }

  hashes() {
    return [...this.named.keys()];
  }
}

/** The router's book and the engines' tables. `engines()`: {sim, model, blockSize, ranks} of each there is now. */
export class Audit {
  constructor(router, engines) {
    this.router = router;
    this.engines = engines;
  }

  /** What each rank really has: [{holder, model, next, table}]. */
  async truth() {
    const all = await Promise.all(
      this.engines().map(async ({ sim, model, blockSize }) =>
        (await sim.blocks()).map((rank) => ({
          holder: `http://${sim.address} ${rank.rank}`, model, next: rank.next_seq, table: new Table(rank, blockSize),
        })),
      ),
    );
    return all.flat().sort(byHolder);
  }

  async told() {
    const { caches } = await indexOf(this.router);
    return caches.map((one) => ({ holder: `${one.url} ${one.rank}`, ...one })).sort(byHolder);
  }

  /** Waits until all that was numbered was read; meanwhile, now and then, does `nudge`. Returns the truth. */
  async caughtUp(nudge = () => {}) {
    let seen;
    let looks = 0;
    return until(
      () => `the feeds are read to their ends: ${JSON.stringify(seen)}`,
      async () => {
        const truth = await this.truth();
        const told = await this.told();
        assert.deepEqual(told.map(({ holder }) => holder), truth.map(({ holder }) => holder));
        seen = truth
          .map(({ holder, next }, i) => ({ holder, wanted: next > 0 ? next - 1 : null, ...told[i] }))
          .filter((_, i) => truth[i].next !== null)
          .filter(({ wanted, sequence, feed }) => wanted !== sequence || (wanted !== null && feed !== 'live'));
        if (seen.length === 0) return truth;
        if (++looks % 30 === 0) await nudge(seen);
        return undefined;
      },
    );
  }

  /**
   * At a quiet point: what each rank is said to hold is what it holds, block by block; of those that are `lacking` it may
   * be less. Returns the truth, and how many prompts were looked up.
   */
  async agrees({ nudge, lacking = () => false } = {}) {
    const truth = await this.caughtUp(nudge);
    const told = await this.told();
    truth.forEach(({ holder, table }, i) => {
      if (!lacking(holder)) return assert.deepEqual(told[i].blocks, table.counts, `blocks of ${holder}: ${JSON.stringify(told[i])}`);
      for (const tier of Object.keys(NOWHERE)) assert.ok(told[i].blocks[tier] <= table.counts[tier], `${holder} ${tier}`);
    });
    const prompts = new Map(
      truth.flatMap(({ model, table }) => table.chains().map((chain) => [JSON.stringify([model, chain]), { model, ...chain }])),
    );
    const doubted = new Set(told.filter(({ believed }) => !believed).map(({ holder }) => holder));
    for (const prompt of prompts.values()) await this.#agreesOn(prompt, truth, { lacking, doubted });
    return { truth, prompts: prompts.size };
  }

  /** The same of an engine that does not number its batches: it agrees after a while. */
  async comesToAgree(more = {}) {
    let problem;
    await until(
      () => `the index is right: ${problem}`,
      () => this.agrees(more).then(() => true, (error) => void (problem = error.message)),
    );
  }

  async #agreesOn({ model, tokens, salt }, truth, { lacking, doubted }) {
    const matches = await matchesOf(this.router, tokens, { model, salt });
    const found = new Map(matches.map((one) => [`http://${one.worker} ${one.rank}`, one]));
    for (const { holder, model: its, table } of truth) {
      const held = its === model ? table.prefix(tokens, salt) : { ...NOWHERE };
      const match = found.get(holder);
      const blocks = match?.blocks ?? NOWHERE;
      const what = `${holder} of ${tokens.length} tokens of ${model} ${salt}`;
      found.delete(holder);
      if (lacking(holder)) {
        for (const tier of Object.keys(NOWHERE)) assert.ok(blocks[tier] <= held[tier], `${what} ${JSON.stringify([blocks, held])}`);
        continue;
      }
      assert.equal(match?.told ?? 0, held.external, what);
      // Feeds that are not believed are shown all the same.
      const counted = doubted.has(holder) ? NOWHERE : held;
      assert.deepEqual(blocks, counted, what);
      const reusable = Math.min(counted.external, Math.floor((tokens.length - 1) / table.blockSize));
      assert.equal(match?.cached_tokens ?? 0, reusable * table.blockSize, what);
    }
    assert.deepEqual([...found.keys()], [], 'no other worker is said to hold it');
  }
}
