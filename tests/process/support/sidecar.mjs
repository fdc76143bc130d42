// SPDX-License-Identifier: Apache-2.0
// `baton register` beside an engine.
import assert from 'node:assert/strict';

import { Process, until } from './process.mjs';

export const PREFIX = '/baton/workers/';

/** `baton register` for one engine; `flags` replace and extend what it is told. */
export class Sidecar {
  static start(s, etcd, address, flags = {}) {
    const sidecar = new Sidecar();
    sidecar.etcd = etcd;
    sidecar.readyFile = s.file(`register-${s.processes.length}.ready`);
    const all = {
      etcd: etcd.url, 'etcd.timeout': '1s', 'engine-url': `http://${address}`, engine: 'vllm', role: 'aggregated',
      ttl: '3s', 'health-interval': '100ms', 'log.format': 'json', 'ready-file': sidecar.readyFile, ...flags,
    };
    const args = Object.entries(all).flatMap(([name, value]) => [value].flat().flatMap((one) => [`--${name}`, one]));
    sidecar.process = s.adopt(new Process('register', ['register', ...args]));
    return sidecar;
  }

  /** Log lines of one event so far. */
  lines(event) {
    const { stderr } = this.process;
    const lines = stderr.slice(0, stderr.lastIndexOf('\n') + 1).split('\n').filter(Boolean).map((line) => JSON.parse(line));
    return lines.filter((line) => line.event === event);
  }

  said(event, times = 1) {
    return until(() => `${event} in ${this.process.stderr}`, () => this.lines(event).length >= times);
  }

  /** The worker as it stands in etcd: {key, lease, ...announcement}; undefined where it does not. */
  async find() {
    const entries = await this.etcd.list(PREFIX);
    assert.ok(entries.size <= 1, `one worker, one key: ${[...entries.keys()]}`);
    for (const [key, { value, lease }] of entries) return { key, lease, ...JSON.parse(value) };
    return undefined;
  }

  appears() {
    return until(() => `the worker in etcd; ${this.process.stderr}`, () => this.find());
  }

  disappears() {
    return until(() => `no worker in etcd; ${this.process.stderr}`, async () => !(await this.find()));
  }

  async leaves() {
    this.process.signal('SIGTERM');
    assert.deepEqual(await this.process.ended(), { code: 0, signal: null });
    assert.equal(await this.find(), undefined, 'nothing stays behind');
  }
}
