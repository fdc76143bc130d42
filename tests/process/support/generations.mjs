// SPDX-License-Identifier: Apache-2.0
// A router and those that follow it on the same sockets. They share standard error, and so one log.
import { isRunning } from './process_tree.mjs';
import { until } from './process.mjs';

export class Generations {
  /** Ends with the scenario, whichever of them is still there. */
  constructor(s, router) {
    this.router = router;
    this.pids = [router.process.pid];
    s.after(() => this.end());
  }

  get current() {
    return this.pids.at(-1);
  }

  signal(name, pid = this.current) {
    process.kill(pid, name);
  }

  /** SIGUSR2, until the next one has taken over; returns its pid. */
  async restart() {
    const before = this.lines('handed_over').length;
    const served = this.lines('serving').length;
    this.signal('SIGUSR2');
    await until('it has handed over', () => this.lines('handed_over').length > before, 60_000);
    this.pids.push(this.lines('handed_over').at(-1).successor);
    await until('the next one serves', () => this.lines('serving').length > served);
    return this.current;
  }

  /** SIGUSR2 that fails; returns the log line that says so. */
  async failToRestart(event = 'restart_failed') {
    const before = this.lines(event).length;
    this.signal('SIGUSR2');
    await until(`${event} is told`, () => this.lines(event).length > before, 60_000);
    return this.lines(event).at(-1);
  }

  lines(event) {
    return this.router.logLines(event);
  }

  async gone(pid) {
    await until(`process ${pid} has ended`, async () => !(await isRunning(pid)), 60_000);
  }

  async end() {
    for (const pid of this.pids.slice(1)) {
      for (const name of ['SIGTERM', 'SIGTERM']) {
        try {
          process.kill(pid, name);
        } catch {
          break; // it has ended
        }
      }
    }
    await Promise.all(this.pids.slice(1).map((pid) => this.gone(pid)));
  }
}
