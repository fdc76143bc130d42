// SPDX-License-Identifier: Apache-2.0
// The three ways in which a router learns of workers, each with a router that knows no other. Tests of what becomes of
// workers say join and leave, and need not know how it is announced.
import assert from 'node:assert/strict';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { Etcd } from './etcd.mjs';
import { Router } from './fleet.mjs';
import { request } from './http.mjs';
import { Sidecar } from './sidecar.mjs';

/** `models[].workers` of the configuration, written anew with each change. */
class FileSource {
  workers = new Map(); // by address

  static async start(s, { model = {}, config = {} } = {}) {
    const source = new FileSource();
    source.model = { name: 'demo', ...model };
    source.router = await Router.start(s, { ...config, models: [source.model] });
    return source;
  }

  join(sim, more = {}) {
    this.workers.set(sim.address, { ...sim.worker(), ...more });
    return this.write();
  }

  leave(sim) {
    this.workers.delete(sim.address);
    return this.write();
  }

  write() {
    return this.router.reconfigure({ models: [{ ...this.model, workers: [...this.workers.values()] }] });
  }

  /** The host of an engine is lost, with all that runs there. */
  lose(sim) {
    return sim.kill();
  }
}

/** POST and DELETE of /workers. */
class AdminSource {
  static async start(s, { model = {}, config = {} } = {}) {
    const source = new AdminSource();
    source.router = await Router.start(s, { ...config, models: [{ name: 'demo', ...model }] });
    return source;
  }

  async join(sim, more = {}) {
    const body = JSON.stringify({ model: 'demo', ...sim.worker(), ...more });
    const { status, text } = await request(this.router.admin, { path: '/workers', body });
    assert.equal(status, 201, text);
  }

  async leave(sim) {
    const { status, text } = await request(this.router.admin, { method: 'DELETE', path: `/workers/${sim.address}` });
    assert.equal(status, 200, text);
  }

  lose(sim) {
    return sim.kill();
  }
}

/** `baton register` beside each engine, and a real etcd. */
class EtcdSource {
  sidecars = new Map(); // by address

  static async start(s, { model = {}, config = {} } = {}) {
    const source = new EtcdSource();
    source.scenario = s;
    source.etcd = await Etcd.start(s);
    const models = [{ name: 'demo', ...model }];
    source.router = await Router.start(s, { etcd: { endpoints: [source.etcd.url] }, ...config, models });
    return source;
  }

  async join(sim, more = {}) {
    const set = Object.entries(more).map(([name, value]) => `${name}=${value}`);
    const flags = { engine: sim.engine, role: sim.role, ttl: '2s', ...(set.length > 0 ? { set } : {}) };
    this.sidecars.set(sim.address, Sidecar.start(this.scenario, this.etcd, sim.address, flags));
  }

  /** The sidecar drains it, where it is still there, and withdraws it. */
  async leave(sim) {
    const { process } = this.sidecars.get(sim.address);
    process.signal('SIGTERM');
    await process.ended();
  }

  async lose(sim) {
    const { process } = this.sidecars.get(sim.address);
    process.expectedExit = undefined;
    process.signal('SIGKILL');
    await Promise.all([process.ended(), sim.kill()]);
  }
}

export const SOURCES = { file: FileSource, admin: AdminSource, etcd: EtcdSource };

/** A configuration as Kubernetes mounts it: reached by links, of which one is swapped when it changes. */
export class MountedFile {
  version = 0;

  constructor(directory) {
    this.path = join(directory, 'baton.yaml');
  }

  async write(text) {
    const directory = dirname(this.path);
    const before = join(directory, `..version_${this.version++}`);
    const now = `..version_${this.version}`;
    await mkdir(join(directory, now), { recursive: true });
    await writeFile(join(directory, now, 'baton.yaml'), text);
    await symlink(now, join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    if (this.version === 1) await symlink('..data/baton.yaml', this.path);
    await rm(before, { recursive: true, force: true });
  }
}
