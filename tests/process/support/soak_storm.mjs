// SPDX-License-Identifier: Apache-2.0
// What happens to a fleet that is operated for long: workers die and come back, are drained, leave the configuration and join again,
// the configuration is read again, and KV events are lost.
import assert from 'node:assert/strict';

import { pause } from './dice.mjs';
import { request } from './http.mjs';
import { inTime } from './process.mjs';

const KV_FAULTS = ['kv_drop', 'kv_lose', 'kv_garbage', 'kv_duplicate', 'kv_restart'];

export class Storm {
  constructor(router, slots, dice) {
    Object.assign(this, { router, slots, dice });
    this.models = router.config.models;
    this.counts = { kills: 0, drains: 0, reloads: 0, removals: 0, 'lost events': 0 };
    this.ending = new Set(); // what has begun and is to be undone
  }

  toString() {
    return Object.entries(this.counts).map(([what, count]) => `${count} ${what}`).join(', ');
  }

  async blow(milliseconds) {
    const until = Date.now() + milliseconds;
    const deeds = [() => this.#kill(), () => this.#kill(), () => this.#drain(), () => this.#reload(), () => this.#lose()];
    while (Date.now() < until) {
      await pause(this.dice.between(200, 1_200));
      await this.dice.of(deeds)();
    }
  }

  /** Everything is undone: all workers live, none is drained, and the configuration names them all. */
  async calm() {
    while (this.ending.size > 0) await inTime('all is undone', Promise.all(this.ending), 60_000);
    await this.#configure(this.models);
    for (const slot of this.slots) await slot.sim.clearFaults();
  }

  /** Undone after a while. */
  #later(undo) {
    const done = pause(this.dice.between(0, 2_000)).then(undo).finally(() => this.ending.delete(done));
    this.ending.add(done);
  }

  /** A worker that is not the only one of its role, and to which nothing has been done. */
  #someSlot() {
    const slot = this.dice.of(this.slots);
    const others = this.slots.filter((one) => one.flags.model === slot.flags.model && one.role === slot.role && one !== slot);
    return !slot.busy && others.some((one) => !one.busy) ? slot : undefined;
  }

  #take(slot, undo) {
    slot.busy = true;
    this.#later(async () => {
      await undo();
      slot.busy = false;
    });
  }

  async #kill() {
    const slot = this.#someSlot();
    if (!slot) return;
    ++this.counts.kills;
    await slot.kill();
    this.#take(slot, () => slot.restart());
  }

  async #drain() {
    const slot = this.#someSlot();
    if (!slot) return;
    ++this.counts.drains;
    const ask = async (method) => {
      const { status, text } = await request(this.router.admin, { method, path: `/workers/${slot.sim.address}/drain` });
      assert.equal(status, 200, `${method} of a drain: ${text}`);
    };
    await ask('POST');
    this.#take(slot, () => ask('DELETE'));
  }

  /** Other options of a model, which make another one of it, or a worker that it has no longer. */
  async #reload() {
    ++this.counts.reloads;
    const changed = this.dice.of(this.models);
    const leaving = this.dice.chance(0.5) ? this.#someSlot() : undefined;
    const retries = 3 + this.dice.below(2);
    const models = this.models.map((model) => {
      if (leaving?.flags.model === model.name) return { ...model, workers: model.workers.filter((one) => one !== leaving.spec && one.url !== leaving.spec.url) };
      return model === changed ? { ...model, retries } : model;
    });
    await this.#configure(models);
    if (!leaving) return;
    ++this.counts.removals;
    this.#take(leaving, () => this.#configure(this.models));
  }

  async #lose() {
    const slot = this.dice.of(this.slots.filter(({ telling, alive }) => telling && alive));
    ++this.counts['lost events'];
    // It may die meanwhile.
    await slot.sim.fault({ kind: this.dice.of(KV_FAULTS), count: this.dice.between(1, 3) }).catch(() => {});
  }

  async #configure(models) {
    await this.router.reconfigure({ models });
    this.router.process.signal('SIGHUP');
  }
}
