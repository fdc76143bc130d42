// SPDX-License-Identifier: Apache-2.0
// Starting, watching and ending the processes under test.
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export const BATON =
  process.env.BATON ?? fileURLToPath(new URL('../../../build/release/baton', import.meta.url));
/** The program of the simulated engines: for a router under a sanitizer `./dev` names that of the release build, which takes a tenth of the time. */
export const SIM = process.env.BATON_SIM ?? BATON;

const SANITIZER_REPORT =
  /(ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:|SUMMARY: \w+Sanitizer)/;

/** Waits until `condition` gives something truthy and returns it; fails with `what` after `within` ms. */
export async function until(what, condition, within = 30_000, every = 5) {
  const deadline = Date.now() + within;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) {
      throw new Error(`not within ${within} ms: ${typeof what === 'function' ? what() : what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}

export async function residentBytes(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024;
}

/** Fails with `what` when the promise takes longer than `within` ms: nothing under test may hang. */
export function inTime(what, promise, within = 30_000) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${within} ms: ${what}`)), within);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** One process under test. It dies with this one, so that an aborted test run leaves nothing behind. */
export class Process {
  constructor(name, args, env = {}, program = BATON, { stdin = 'ignore', handed = [] } = {}) {
    this.name = name;
    this.stdout = '';
    this.stderr = '';
    this.exited = undefined; // {code, signal}
    this.expectedExit = 0; // code, or undefined where any will do
    this.child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], {
      stdio: [stdin, 'pipe', 'pipe', ...handed], // handed: descriptors, from 3 on
      env: { ...process.env, ...env },
    });
    this.pid = this.child.pid;
    this.child.stdout.setEncoding('utf8').on('data', (text) => (this.stdout += text));
    this.child.stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text));
    this.exit = new Promise((resolve) => {
      this.child.on('error', (error) => resolve((this.exited = { error })));
      this.child.on('close', (code, signal) => resolve((this.exited = { code, signal })));
    });
  }

  /** The address a process writes to its ready file once it listens. */
  async address(readyFile) {
    const text = await until(`${this.name} is ready`, async () => {
      if (this.exited) {
        throw new Error(`${this.name} ended early: ${JSON.stringify(this.exited)}\n${this.stderr}`);
      }
      return readFile(readyFile, 'utf8').catch(() => '');
    });
    if (!/^[^\s]+:\d+\n$/.test(text)) throw new Error(`ready file of ${this.name}: ${JSON.stringify(text)}`);
    return text.trim();
  }

  signal(name) {
    if (!this.exited) this.child.kill(name);
  }

  async ended(within = 30_000) {
    return inTime(`end of ${this.name}`, this.exit, within);
  }

  /** Ends the process and says what was wrong with its life, if anything. */
  async finish() {
    this.signal('SIGTERM');
    try {
      await this.ended();
    } catch (error) {
      this.signal('SIGKILL');
      await this.exit;
      return error.message;
    }
    const { code, signal, error } = this.exited;
    if (error) return `${this.name} could not start: ${error.message}`;
    if (SANITIZER_REPORT.test(this.stderr)) return `${this.name}: sanitizer report`;
    if (this.expectedExit !== undefined && code !== this.expectedExit) {
      return `${this.name} ended with ${signal ?? code}, expected ${this.expectedExit}`;
    }
    return undefined;
  }
}

/** `baton …` to its end: {code, stdout, stderr}. */
export async function runBaton(scenario, args, { expect = 0, env = {} } = {}) {
  const command = scenario.adopt(new Process(`baton ${args.join(' ')}`, args, env));
  command.expectedExit = expect;
  const { code } = await command.ended();
  return { code, stdout: command.stdout, stderr: command.stderr };
}
