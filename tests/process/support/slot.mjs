// SPDX-License-Identifier: Apache-2.0
// Fleets whose workers die and come back.
import { readFile } from 'node:fs/promises';

import { Sim } from './fleet.mjs';
import { until } from './process.mjs';
import { LIMITS } from './tally.mjs';

export const LEASE_MS = 8_000;

export const HANDOFFS = [
  { name: 'vllm nixl_pull', engine: 'vllm', handoff: 'nixl_pull' },
  { name: 'sglang bootstrap', engine: 'sglang', handoff: 'bootstrap' },
  { name: 'trtllm context_first', engine: 'trtllm', handoff: 'context_first' },
  { name: 'vllm nixl_push', engine: 'vllm', handoff: 'nixl_push' },
  { name: 'vllm mooncake', engine: 'vllm', handoff: 'mooncake' },
  { name: 'trtllm generation_first', engine: 'trtllm', handoff: 'generation_first' },
];

/**
 * One worker's place in the fleet: an address, at which one process follows the other. `telling`: its engine publishes KV events, but
 * for TensorRT-LLM's.
 */
export class Slot {
  constructor(scenario, role, { engine, handoff }, { telling = false, ...flags } = {}) {
    this.scenario = scenario;
    this.role = role;
    this.telling = telling && engine !== 'trtllm';
    this.flags = { engine, ...(handoff ? { handoff } : {}), role, leaseMs: LEASE_MS, decodeMs: 3, transferMs: 1, ...LIMITS, ...flags };
    this.keepsItsWord = false;
  }

  /** Where it meets others is its configuration, and stays; who it is (the engine's id) is new each time. */
  async start() {
    const { engine, handoff, role } = this.flags;
    const meets = role === 'prefill' && ['bootstrap', 'mooncake'].includes(handoff);
    const ready = this.scenario.file(`bootstrap-${this.scenario.processes.length}-${this.role}-${Math.random()}`);
    const [port, bootstrap] = [this.port ?? 0, this.bootstrapPort ?? 0];
    const flags = { ...this.flags, port, ...(meets ? { bootstrapPort: bootstrap, bootstrapReadyFile: ready } : {}) };
    const feed = this.feed ? { kvEvents: this.feed, kvReplay: this.replay } : {};
    this.sim = this.telling ? await Sim.telling(this.scenario, { ...flags, ...feed }) : await Sim.start(this.scenario, flags);
    this.port = Number(this.sim.address.split(':')[1]);
    if (meets) this.bootstrapPort = Number((await readFile(ready, 'utf8')).trim().split(':')[1]);
    [this.feed, this.replay] = [this.sim.feed, this.sim.replay];
    this.alive = true;
    this.spec = { url: `http://${this.sim.address}`, engine, role, ...(handoff ? { handoff } : {}) };
    if (meets) this.spec.bootstrap_port = this.bootstrapPort;
    if (this.telling) Object.assign(this.spec, { kv_events: this.feed, kv_replay: this.replay });
    return this;
  }

  async kill() {
    this.alive = false;
    await this.sim.kill();
  }

  restart() {
    return Sim.again(this.scenario, () => this.start());
  }
}

/** Waits until nothing runs, waits or is pinned anywhere; returns the last states. */
export async function rest(router, slots) {
  let seen;
  await until(
    () => `fleet at rest; last seen ${JSON.stringify(seen)}`,
    async () => {
      const states = await Promise.all(slots.map((slot) => slot.sim.state()));
      const busy = ({ running, waiting, pinned }) => running + waiting + pinned;
      seen = { inFlight: await router.inFlight(), states: states.map(({ running, waiting, pinned, leaked }) => [running, waiting, pinned, leaked].join('/')) };
      if (!states.every((state) => busy(state) === 0) || seen.inFlight !== 0) return false;
      seen.states = states;
      return true;
    },
    LEASE_MS + 30_000,
  );
  return seen.states;
}
