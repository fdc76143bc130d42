// SPDX-License-Identifier: Apache-2.0
// A real etcd of one member, and a client of its JSON gateway that shares nothing with ours.
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';

import { makeCertificate } from './certificate.mjs';
import { freePort } from './ports.mjs';
import { Process, until } from './process.mjs';

const CALL_MS = 5_000;
const encode = (text) => Buffer.from(text).toString('base64');
const decode = (text) => Buffer.from(text ?? '', 'base64').toString();

/** The key behind the last one with this prefix. Prefixes that end in 0xff are not for tests. */
function prefixEnd(prefix) {
  const bytes = Buffer.from(prefix);
  bytes[bytes.length - 1] += 1;
  return bytes.toString('base64');
}

export class Etcd {
  /**
   * `tls`: true for a certificate of the server, 'mutual' where it also wants one of its clients.
   * `auth`: {user, password}, who may do everything; others may do nothing.
   */
  static async start(scenario, { tls = false, auth } = {}) {
    const etcd = new Etcd();
    etcd.scenario = scenario;
    etcd.name = `etcd-${scenario.processes.length}`;
    etcd.tls = tls;
    [etcd.port, etcd.peerPort] = [await freePort(), await freePort()];
    etcd.address = `127.0.0.1:${etcd.port}`;
    etcd.url = `${tls ? 'https' : 'http'}://${etcd.address}`;
    if (tls) {
      etcd.certificate = scenario.file(`${etcd.name}.pem`);
      etcd.key = scenario.file(`${etcd.name}.key`);
      await makeCertificate(etcd.certificate, etcd.key);
      const pem = { ca: await readFile(etcd.certificate), servername: 'localhost' };
      if (tls === 'mutual') Object.assign(pem, { cert: pem.ca, key: await readFile(etcd.key) });
      etcd.trust = pem;
    }
    scenario.after(() => etcd.resume()); // a paused process cannot be asked to end
    await etcd.restart();
    if (auth) await etcd.#enableAuth(auth);
    return etcd;
  }

  /** Starts it on the same data and ports; what ran before must have ended. */
  async restart() {
    const files = ['--cert-file', this.certificate, '--key-file', this.key];
    if (this.tls === 'mutual') files.push('--client-cert-auth', '--trusted-ca-file', this.certificate);
    const peers = `http://127.0.0.1:${this.peerPort}`;
    const flags = [
      '--name', this.name, '--data-dir', this.scenario.file(`${this.name}.data`),
      '--listen-client-urls', this.url, '--advertise-client-urls', this.url,
      '--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers,
      '--initial-cluster', `${this.name}=${peers}`, '--log-level', 'warn',
    ];
    // Debian builds it for more machines than its authors vouch for.
    const env = process.arch === 'arm64' ? { ETCD_UNSUPPORTED_ARCH: 'arm64' } : {};
    this.process = new Process(this.name, [...flags, ...(this.tls ? files : [])], env, 'etcd');
    this.process.expectedExit = undefined;
    this.scenario.adopt(this.process);
    await until(`${this.name} answers`, async () => {
      if (this.process.exited) throw new Error(`${this.name} ended early:\n${this.process.stderr}`);
      return this.#isHealthy();
    });
  }

  put(key, value, lease = 0) {
    return this.call('kv/put', { key: encode(key), value: encode(value), lease: String(lease) });
  }

  /** The value; undefined where there is no such key. */
  async get(key) {
    const { kvs = [] } = await this.call('kv/range', { key: encode(key) });
    return kvs.length > 0 ? decode(kvs[0].value) : undefined;
  }

  /** Key → {value, lease} of all keys with the prefix. */
  async list(prefix) {
    const { kvs = [] } = await this.call('kv/range', { key: encode(prefix), range_end: prefixEnd(prefix) });
    return new Map(kvs.map(({ key, value, lease = '0' }) => [decode(key), { value: decode(value), lease }]));
  }

  del(key) {
    return this.call('kv/deleterange', { key: encode(key) });
  }

  /** The id of a new lease, as a string: it may be larger than a number can hold. */
  async lease(seconds) {
    return (await this.call('lease/grant', { TTL: String(seconds) })).ID;
  }

  revoke(lease) {
    return this.call('lease/revoke', { ID: lease });
  }

  async revision() {
    return Number((await this.call('kv/range', { key: encode('-') })).header.revision);
  }

  /** Forgets everything before `revision`, by default before now. */
  async compact(revision) {
    return this.call('kv/compaction', { revision: String(revision ?? (await this.revision())), physical: true });
  }

  pause() {
    this.process.signal('SIGSTOP');
  }

  resume() {
    this.process.signal('SIGCONT');
  }

  /** Ends it as a power cut would. */
  async kill() {
    this.process.signal('SIGKILL');
    await this.process.ended();
  }

  async stop() {
    this.resume();
    this.process.signal('SIGTERM');
    await this.process.ended();
  }

  /** One call of the gateway, as the user if there is one; fails with etcd's words. */
  async call(path, body, renew = true) {
    const { status, text } = await this.#send('POST', `/v3/${path}`, JSON.stringify(body));
    if (status === 200) return JSON.parse(text);
    if (this.auth && renew && /invalid auth token/.test(text)) {
      await this.#logIn();
      return this.call(path, body, false);
    }
    throw new Error(`${this.name}: ${path}: ${status} ${text}`);
  }

  async #enableAuth(auth) {
    // etcd wants a root before it begins to ask for names.
    for (const name of new Set(['root', auth.user])) {
      await this.call('auth/user/add', { name, password: auth.password });
      await this.call('auth/user/grant', { user: name, role: 'root' });
    }
    await this.call('auth/enable', {});
    this.auth = auth;
    await this.#logIn();
  }

  async #logIn() {
    const { user: name, password } = this.auth;
    this.token = undefined;
    this.token = (await this.call('auth/authenticate', { name, password })).token;
  }

  async #isHealthy() {
    try {
      const { status, text } = await this.#send('GET', '/health');
      return status === 200 && JSON.parse(text).health === 'true';
    } catch {
      return false;
    }
  }

  #send(method, path, body) {
    const options = { ...this.trust, method, agent: false, timeout: CALL_MS };
    options.headers = this.token ? { authorization: this.token } : {};
    return new Promise((resolve, reject) => {
      const outgoing = (this.tls ? https : http).request(this.url + path, options, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part) => (text += part));
        response.on('end', () => resolve({ status: response.statusCode, text }));
        response.on('error', reject);
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`${this.name} is silent`)));
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }
}
