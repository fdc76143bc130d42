// SPDX-License-Identifier: Apache-2.0
// Looking at the processes another process has started.
import { readFile, readdir } from 'node:fs/promises';

async function parentOf(pid) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

/** Pids of all processes below `pid`. */
export async function descendantsOf(pid) {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = new Map(await Promise.all(pids.map(async (one) => [one, await parentOf(one)])));
  const isBelow = (one) => {
    for (let at = parents.get(one); at; at = parents.get(at)) if (at === pid) return true;
    return false;
  };
  return pids.filter(isBelow);
}

/** Whether a process still runs; a zombie waiting to be collected does not. */
export async function isRunning(pid) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !/\) [ZX] /.test(stat);
}
