// SPDX-License-Identifier: Apache-2.0
// A test with processes: whatever happens in it, they are ended, judged and, on failure, heard.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

const TAIL_BYTES = 6_000;

class Scenario {
  constructor(context, directory) {
    this.context = context;
    this.directory = directory;
    this.processes = [];
    this.cleanups = [];
    this.failed = false;
  }

  file(name) {
    return join(this.directory, name);
  }

  /** Ends with the scenario. */
  adopt(process) {
    this.processes.push(process);
    return process;
  }

  after(cleanup) {
    this.cleanups.push(cleanup);
  }

  /** A named part of the scenario. Parts run one after the other and share its processes. */
  async step(name, body) {
    await this.context.test(name, async () => {
      try {
        await body();
      } catch (error) {
        this.failed = true;
        throw error;
      }
    });
  }

  async close() {
    for (const cleanup of this.cleanups.reverse()) await cleanup();
    const complaints = await Promise.all(this.processes.reverse().map((process) => process.finish()));
    const problems = complaints.filter(Boolean);
    if (this.failed || problems.length > 0) this.#tell();
    await rm(this.directory, { recursive: true, force: true });
    if (problems.length > 0) throw new Error(problems.join('; '));
  }

  #tell() {
    for (const { name, stderr, stdout, exited } of this.processes) {
      if ((!stderr && !stdout) || exited?.signal === 'SIGKILL') continue; // the test killed it
      console.error(`--- ${name} (${JSON.stringify(exited)})\n${(stdout + stderr).slice(-TAIL_BYTES)}`);
    }
  }
}

/** node:test's test() whose body gets a Scenario. */
export function scenario(name, body) {
  test(name, async (context) => {
    const directory = await mkdtemp(join(tmpdir(), 'baton-process-'));
    const running = new Scenario(context, directory);
    let failure;
    try {
      await body(running);
    } catch (error) {
      running.failed = true;
      failure = error;
    }
    try {
      await running.close();
    } catch (error) {
      failure ??= error;
    }
    if (failure) throw failure;
  });
}
