// SPDX-License-Identifier: Apache-2.0
// `baton demo`: one command, a line to paste, and nothing left when it ends, however it ends.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { promisify } from 'node:util';

import { eventsOf } from './support/http.mjs';
import { Process, until } from './support/process.mjs';
import { descendantsOf, isRunning } from './support/process_tree.mjs';
import { scenario } from './support/scenario.mjs';

async function startDemo(s) {
  const temporary = s.file('temporary');
  await mkdir(temporary);
  const args = ['demo', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  const demo = s.adopt(new Process('demo', args, { TMPDIR: temporary }));
  await until('the demo says how to try it', () => {
    assert.equal(demo.exited, undefined, `the demo runs: ${demo.stderr}`);
    return /curl [\s\S]*http:\/\/127\.0\.0\.1:\d+[\s\S]*\n/.test(demo.stdout);
  });
  const children = await descendantsOf(demo.pid);
  assert.equal(children.length, 4, 'two prefill and two decode workers');
  return { demo, children, temporary };
}

async function allGone(children) {
  await until('every child is gone', async () => !(await Promise.all(children.map(isRunning))).some(Boolean));
}

scenario('its curl line streams an answer, Ctrl-C ends everything', async (s) => {
  const { demo, children, temporary } = await startDemo(s);
  const lines = demo.stdout.split('\n');
  const start = lines.findIndex((line) => /^\s*curl /.test(line));
  let end = start;
  while (lines[end].endsWith('\\')) ++end;
  const { stdout } = await promisify(execFile)('bash', ['-c', lines.slice(start, end + 1).join('\n')]);
  assert.equal(eventsOf(stdout).at(-1), '[DONE]');
  demo.signal('SIGINT');
  assert.deepEqual(await demo.ended(), { code: 0, signal: null });
  await allGone(children);
  assert.deepEqual(await readdir(temporary), []);
});

scenario('killed midway it leaves nothing behind', async (s) => {
  const { demo, children, temporary } = await startDemo(s);
  demo.expectedExit = undefined;
  // Nothing can tidy up after SIGKILL, so there must be nothing to tidy up once the demo is up.
  await s.step('up, it needs no temporary files', async () => assert.deepEqual(await readdir(temporary), []));
  await s.step('dead, it leaves no process and no file', async () => {
    demo.signal('SIGKILL');
    await demo.ended();
    await allGone(children);
    assert.deepEqual(await readdir(temporary), []);
  });
});
