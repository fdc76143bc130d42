// SPDX-License-Identifier: Apache-2.0
// KV events as Python's zmq and msgpack read and write them, and the table of blocks they make.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';

import { Process, until } from './process.mjs';

// Debian's: the packages are installed for it and no other.
const PYTHON = '/usr/bin/python3';
const READER = fileURLToPath(new URL('kv_reader.py', import.meta.url));
const PUBLISHER = fileURLToPath(new URL('kv_publisher.py', import.meta.url));

const linesOf = (text) => text.slice(0, text.lastIndexOf('\n') + 1).split('\n').filter(Boolean).map((line) => JSON.parse(line));

/** The endpoints of all ranks, given the first's. */
export function rankEndpoints(endpoint, ranks) {
  const colon = endpoint.lastIndexOf(':');
  return Array.from({ length: ranks }, (_, rank) => `${endpoint.slice(0, colon)}:${Number(endpoint.slice(colon + 1)) + rank}`);
}

/** A subscriber to the feeds of all ranks; it reads from before the first batch or not, as luck will have it. */
export class Follower {
  static start(s, endpoints, { bind = false } = {}) {
    const follower = new Follower();
    follower.process = s.adopt(
      new Process('kv-reader', [READER, 'follow', ...(bind ? ['--bind'] : []), ...endpoints], {}, PYTHON),
    );
    follower.process.expectedExit = undefined;
    return follower;
  }

  lines() {
    return linesOf(this.process.stdout);
  }

  /** Messages of one rank so far. */
  messages(rank = 0) {
    return this.lines().filter(({ endpoint }) => endpoint === rank);
  }

  /** Where it listens, when it binds. */
  bound() {
    return until('the reader is bound', () => this.lines().find((line) => line.bound)?.bound);
  }

  /** Does `again` until a message of the rank comes: from then on none is missed. */
  async live(rank, again) {
    await until(
      () => `the feed of rank ${rank} is read; ${this.process.stderr}`,
      async () => {
        await again();
        return this.messages(rank).length > 0;
      },
    );
  }

  /** Waits for the batch with this number. */
  async reaches(seq, rank = 0) {
    await until(
      () => `batch ${seq} of rank ${rank}; have ${this.messages(rank).map((one) => one.seq)} ${this.process.stderr}`,
      () => this.messages(rank).some((one) => one.seq === seq),
    );
  }
}

/** A publisher of whatever batches it is told to, with a replay socket: `events` and `replay` are where. */
export class Publisher {
  static async start(s, flags = []) {
    const publisher = new Publisher();
    publisher.process = s.adopt(new Process('kv-publisher', [PUBLISHER, ...flags], {}, PYTHON, { stdin: 'pipe' }));
    publisher.process.expectedExit = undefined;
    publisher.asked = 0;
    return Object.assign(publisher, await publisher.#answer());
  }

  #answer() {
    const wanted = this.asked++;
    return until(
      () => `an answer of the publisher; ${this.process.stderr}`,
      () => linesOf(this.process.stdout)[wanted],
    );
  }

  /** One command, as its own page has them; returns its answer. */
  tell(command) {
    this.process.child.stdin.write(`${JSON.stringify(command)}\n`);
    return this.#answer();
  }

  publish(...events) {
    return this.tell({ publish: events });
  }
}

/** What the replay socket at `endpoint` answers: {batches, end}. */
export async function replay(s, endpoint, first = 0) {
  const reader = s.adopt(new Process('kv-replay', [READER, 'replay', endpoint, String(first)], {}, PYTHON));
  const exited = await reader.ended();
  assert.equal(exited.code, 0, reader.stderr);
  const lines = linesOf(reader.stdout);
  return { batches: lines.slice(0, -1), end: lines.at(-1) };
}

/** The table of blocks that messages make, applied in order: rows of "tier hash parent tokens", sorted. */
export function tableOf(messages) {
  const blocks = new Map();
  const learned = new Map(); // what each hash stands for, for stores that say no more than the hash
  const tierOf = (event) => (['CPU', 'CPU_PINNED'].includes(event.medium) ? 'CPU' : 'GPU');
  for (const { batch } of messages) {
    for (const event of batch.events) {
      if (event.type === 'AllBlocksCleared') blocks.clear();
      if (event.type === 'BlockRemoved') for (const hash of event.block_hashes) blocks.delete(`${tierOf(event)} ${hash}`);
      if (event.type !== 'BlockStored') continue;
      const size = event.block_size;
      assert.equal(event.token_ids.length, event.block_hashes.length * size);
      let parent = event.parent_block_hash;
      event.block_hashes.forEach((hash, i) => {
        if (size > 0) learned.set(hash, `${parent} ${event.token_ids.slice(i * size, (i + 1) * size)}`);
        blocks.set(`${tierOf(event)} ${hash}`, `${tierOf(event)} ${hash} ${learned.get(hash)}`);
        parent = hash;
      });
    }
  }
  return [...blocks.values()].sort();
}

/** The same of the engine's own table: /sim/blocks of one rank. */
export function truthOf({ blocks }) {
  return blocks.map(({ hash, parent, tokens, tier }) => `${tier} ${hash} ${parent} ${tokens}`).sort();
}
