// SPDX-License-Identifier: Apache-2.0
// Simulated engines, the router, and both together.
import assert from 'node:assert/strict';
import { rename, writeFile } from 'node:fs/promises';
import OpenAI from 'openai';

import { fetchText, request } from './http.mjs';
import { BATON, Process, SIM, until } from './process.mjs';

const flagsOf = (options) =>
  Object.entries(options).flatMap(([name, value]) => [
    `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    ...(value === true ? [] : [String(value)]),
  ]);

/** One simulated engine server with its control listener, which faults never touch. */
export class Sim {
  constructor(process, engine, role) {
    this.process = process;
    this.engine = engine;
    this.role = role;
  }

  static async start(scenario, { engine = 'vllm', role = 'aggregated', ...flags } = {}) {
    const name = `sim-${engine}-${role}-${scenario.processes.length}`;
    const ready = scenario.file(`${name}.ready`);
    const controlReady = scenario.file(`${name}.control`);
    const all = { engine, role, port: 0, readyFile: ready, controlPort: 0, controlReadyFile: controlReady };
    const defaults = { decodeMs: 0.5, transferMs: 0 };
    const process = new Process(name, ['sim', ...flagsOf({ ...all, ...defaults, ...flags })], {}, SIM);
    const sim = new Sim(scenario.adopt(process), engine, role);
    sim.address = await process.address(ready);
    sim.control = await process.address(controlReady);
    return sim;
  }

  async #control(method, path, body) {
    const answer = await request(this.control, { method, path, body: body && JSON.stringify(body) });
    assert.equal(answer.status, 200, `${method} ${path} of ${this.process.name}: ${answer.text}`);
    return JSON.parse(answer.text);
  }

  state() {
    return this.#control('GET', '/sim/state');
  }

  /** Starts one that publishes KV events and answers replays: `feed` and `replay` are the first rank's. */
  static async telling(scenario, flags = {}) {
    const file = scenario.file(`kv-${scenario.processes.length}`);
    const free = 'tcp://127.0.0.1:0';
    const files = { kvReadyFile: `${file}.ready`, kvReplayReadyFile: `${file}.replay` };
    const sim = await Sim.start(scenario, { kvEvents: free, kvReplay: free, ...files, ...flags });
    sim.feed = await sim.process.address(files.kvReadyFile);
    sim.replay = await sim.process.address(files.kvReplayReadyFile);
    return sim;
  }

  /** Starts one at the ports of another. An outgoing connection of any process may have one of them, for as long as it is kept. */
  static async again(scenario, start) {
    for (let attempt = 0; ; ++attempt) {
      const number = scenario.processes.length;
      try {
        return await start();
      } catch (error) {
        scenario.processes[number].expectedExit = undefined;
        if (attempt === 600) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  /** The prefix cache of each rank: [{rank, next_seq, blocks}]. */
  blocks() {
    return this.#control('GET', '/sim/blocks');
  }

  /** The request legs that arrived, oldest first. */
  legs() {
    return this.#control('GET', '/sim/requests');
  }

  fault(fault) {
    return this.#control('POST', '/sim/faults', fault);
  }

  /** Those still on. */
  faults() {
    return this.#control('GET', '/sim/faults');
  }

  /** Clears all faults; returns once the engine takes connections again. */
  async clearFaults() {
    await this.#control('DELETE', '/sim/faults');
    await until(`${this.process.name} listens again`, () => fetchText(this.address, '/health').then(() => true, () => false));
  }

  /** Ends it as a power cut would. */
  async kill() {
    this.process.expectedExit = undefined;
    this.process.signal('SIGKILL');
    await this.process.ended();
  }

  /** As the router's configuration names it. */
  worker() {
    return { url: `http://${this.address}`, engine: this.engine, role: this.role };
  }
}

/** A file that is replaced whole, as editors and deployment tools do. */
class ConfigFile {
  writes = 0;

  constructor(path) {
    this.path = path;
  }

  async write(text) {
    const next = `${this.path}.${++this.writes}`;
    await writeFile(next, text);
    await rename(next, this.path);
  }
}

/** The router under test. */
export class Router {
  /**
   * `configFile` ({path, write(text)}) is where its configuration stands, if not in a file of the scenario; `descriptors` how
   * many the process may have; `program` a path that leads to the binary.
   */
  static async start(scenario, config, env = {}, configFile = undefined, descriptors = undefined, program = BATON) {
    const number = scenario.processes.length;
    const file = (name) => scenario.file(`router-${number}.${name}`);
    const whole = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', log: { format: 'json' }, ...config };
    const router = new Router();
    router.config = whole;
    router.configFile = configFile ?? new ConfigFile(file('yaml'));
    await router.reconfigure({});
    router.process = scenario.adopt(
      new Process(
        'router',
        [
          ...(descriptors ? [`--nofile=${descriptors}:${descriptors}`, program] : []),
          ...['serve', '--config', router.configFile.path, '--policy', 'round_robin'],
          ...['--ready-file', file('ready'), '--admin-ready-file', file('admin')],
        ],
        env,
        descriptors ? 'prlimit' : program,
      ),
    );
    router.address = await router.process.address(file('ready'));
    router.admin = await router.process.address(file('admin'));
    return router;
  }

  /** Writes its configuration anew, with these keys changed; it will notice by itself. */
  async reconfigure(changes) {
    // JSON is YAML, so a test's configuration needs no writer of its own.
    this.config = { ...this.config, ...changes };
    // One after the other: a file that is older than the one before it would stay.
    this.written = Promise.resolve(this.written).then(() => this.configFile.write(JSON.stringify(this.config, null, 1)));
    await this.written;
  }

  /** npm's official client, without its own retries: they would hide what the router answers. */
  client(options = {}) {
    return new OpenAI({ baseURL: `http://${this.address}/v1`, apiKey: 'unused', maxRetries: 0, ...options });
  }

  /** Every sample of GET /metrics as {name, labels, value}. */
  async metrics() {
    return parseMetrics(await fetchText(this.admin, '/metrics'));
  }

  /** Sum of the samples of one metric whose labels include the given ones. */
  async metric(name, labels = {}) {
    const samples = (await this.metrics()).filter(
      (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    );
    assert.ok(samples.length > 0, `there is a metric ${name} ${JSON.stringify(labels)}`);
    return samples.reduce((sum, sample) => sum + sample.value, 0);
  }

  /** Requests running on any worker, as the router counts them. */
  inFlight() {
    return this.metric('baton_worker_in_flight');
  }

  /** Lines of the log so far, of one event where that is said. */
  logLines(event) {
    const whole = this.process.stderr.slice(0, this.process.stderr.lastIndexOf('\n') + 1);
    const lines = whole.split('\n').filter((text) => text.startsWith('{')).map((text) => JSON.parse(text));
    return event ? lines.filter((line) => line.event === event) : lines;
  }

  /** The same of an event that has happened: its line may be written a moment after others can see what it tells of. */
  async logged(event) {
    await until(`log line ${event}`, () => this.logLines(event).length > 0);
    return this.logLines(event);
  }

  /** The log line of a request's end; it may be written a moment after the client has its last byte. */
  async requestLine(requestId) {
    return until(`log line of request ${requestId}`, () => this.logLines('request').find(({ id }) => id === requestId));
  }

  /** GET /ready: {ready, reason, models}. */
  async readiness() {
    return JSON.parse(await fetchText(this.admin, '/ready'));
  }

  /** Waits until every model can serve: workers that were away have been seen again. */
  async ready() {
    await until('every model is ready', async () => Object.values((await this.readiness()).models).every((one) => one.ready));
  }

  /** Who would serve a request, asked of POST /v1/route: {status, ...the route or error}. */
  async route(body, headers = {}) {
    const answer = await request(this.admin, { path: '/v1/route', body: JSON.stringify(body), headers });
    return { status: answer.status, ...JSON.parse(answer.text) };
  }

  /** The worker at an engine's address as GET /workers tells it; undefined where there is none. */
  async workerAt({ address }) {
    const { workers } = JSON.parse(await fetchText(this.admin, '/workers'));
    return workers.find(({ url }) => url === `http://${address}`);
  }

  /** Waits until that worker is in a state; returns it. */
  async untilState(sim, state) {
    return until(`${sim.process.name} is ${state}`, async () => {
      const worker = await this.workerAt(sim);
      return worker?.state === state && worker;
    });
  }

  async untilGone(sim) {
    await until(`${sim.process.name} is gone`, async () => !(await this.workerAt(sim)));
  }

  /** Waits until every worker of the model may have requests. */
  async allUp(model = 'demo') {
    await until('every worker may have requests', async () => {
      const { namespaces } = (await this.readiness()).models[model];
      const roles = Object.values(namespaces).flatMap((one) => Object.values(one.roles));
      return roles.flatMap(({ states }) => Object.keys(states)).every((state) => state === 'ready' || state === 'half_open');
    });
  }
}

export function parseMetrics(text) {
  return text
    .split('\n')
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => {
      const [, name, labels = '', value] = /^([^{\s]+)(?:\{(.*)\})?\s+(\S+)/.exec(line);
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
      return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}

/**
 * A router in front of simulated workers: their engine (`engines` for single roles), counts per role, simulator flags.
 * `worker(sim, i)` gives further keys of the i-th worker of its role.
 */
export class Fleet {
  static async start(
    scenario,
    { engine = 'vllm', engines = {}, counts = { prefill: 1, decode: 1 }, sim = {}, config = {}, model = {}, worker, descriptors } = {},
  ) {
    const fleet = new Fleet();
    const roles = Object.entries(counts).flatMap(([role, count]) => Array(count).fill(role));
    const start = (role) => Sim.start(scenario, { engine: engines[role] ?? engine, role, ...sim });
    fleet.sims = await Promise.all(roles.map(start));
    const workers = fleet.sims.map((one) => ({ ...one.worker(), ...worker?.(one, fleet.of(one.role).indexOf(one)) }));
    const whole = { models: [{ name: 'demo', workers, ...model }], ...config };
    fleet.router = await Router.start(scenario, whole, {}, undefined, descriptors);
    await fleet.router.allUp(); // a worker not heard of yet is passed over
    return fleet;
  }

  of(role) {
    return this.sims.filter((sim) => sim.role === role);
  }

  async states() {
    return Promise.all(this.sims.map((sim) => sim.state()));
  }

  /** Waits until nothing runs or waits anywhere. Blocks may stay pinned: a worker that failed fetches nothing. */
  async idle(busy = ({ running, waiting }) => running + waiting) {
    let seen;
    await until(
      () => `fleet at rest; last seen ${JSON.stringify(seen)}`,
      async () => {
        seen = [await this.states(), await this.router.inFlight()];
        return seen[0].every((state) => busy(state) === 0) && seen[1] === 0;
      },
    );
    return seen[0];
  }

  /** Waits until nothing is pinned either; no pin may have had to wait for its lease, or been let go of twice unless in doubt. */
  async settle({ inDoubt = false } = {}) {
    const states = await this.idle(({ running, waiting, pinned }) => running + waiting + pinned);
    for (const state of states) {
      assert.equal(state.leaked, 0, 'no pin ran into its lease');
      if (!inDoubt) assert.equal(state.unrecognized, 0, 'no blocks were asked for that were not held');
    }
    return states;
  }
}

/** Both shapes a model's workers can take. */
export const SHAPES = {
  'prefill+decode': { prefill: 1, decode: 1 },
  aggregated: { aggregated: 1 },
};

export const ENGINES = ['vllm', 'sglang', 'trtllm'];
