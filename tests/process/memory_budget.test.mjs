// SPDX-License-Identifier: Apache-2.0
// More long bodies than there is memory for: those that do not fit are refused at once, the process stays within its budget, short
// requests and streams go on meanwhile, and afterwards the memory goes back to the machine.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

import { ask, CHAT, chat, checkExact, COMPLETIONS } from './support/ask.mjs';
import { FakeEngine } from './support/fake_engine.mjs';
import { Router, Sim } from './support/fleet.mjs';
import { RawConnection, request, wire } from './support/http.mjs';
import { load } from './support/load.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const MIB = 1 << 20;
const BUDGET = 256 * MIB;
const UNFINISHED = 15 * MIB; // of 16
const ATTACKERS = 40;
const TIMEOUT_MS = 240_000;

/** Fields of /proc/PID/status in bytes. */
async function memoryOf({ process }) {
  const status = await readFile(`/proc/${process.pid}/status`, 'utf8');
  const bytes = (field) => Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)[1]) * 1024;
  return { now: bytes('VmRSS'), peak: bytes('VmHWM'), virtual: bytes('VmSize') };
}

const filled = (length, before, unit, after) => before + unit.repeat(Math.floor((length - before.length - after.length) / unit.length)) + after;
const long = {
  text: (length) => [CHAT, filled(length, '{"model":"large","messages":[{"role":"user","content":"', 'a word and ', '"}]}')],
  messages: (length) => [CHAT, filled(length, '{"model":"large","messages":[', '{"role":"user","content":"hi"},', '{"role":"user","content":"hi"}]}')],
  ids: (length) => [COMPLETIONS, filled(length, '{"model":"large","prompt":[', '17,', '1]}')],
  noJson: (length) => [CHAT, filled(length, '{"model":"large","messages":[', '1,', '!]}')],
};

const head = (length) => wire('POST', CHAT, { 'Content-Length': length });
const chunkedHead = (first) => `${wire('POST', CHAT, { 'Transfer-Encoding': 'chunked' })}${first.toString(16)}\r\n`;

const used = (router) => router.metric('baton_memory_used_bytes');
const refusals = (router) => router.metric('baton_limit_refusals_total', { limit: 'memory' });

async function checkRefusal(connection) {
  const answer = await inTime('a refusal', connection.response(), TIMEOUT_MS);
  assert.equal(answer.status, 503, answer.text);
  assert.equal(JSON.parse(answer.text).error.code, 'memory_exhausted');
  assert.deepEqual([answer.headers['retry-after'], answer.headers.connection], ['1', 'close']);
  connection.destroy();
}

/** Its status; one that was refused while it was still being sent may see no more than the end of its connection. */
async function post(router, [path, body]) {
  const answer = await inTime('an answer', request(router.address, { path, body }).catch(() => undefined), TIMEOUT_MS);
  if (answer?.status === 503) assert.equal(JSON.parse(answer.text).error.code, 'memory_exhausted', answer.text);
  return answer?.status;
}

scenario('long bodies beyond the memory for them', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const [sim, engine] = await Promise.all([Sim.start(s), FakeEngine.start(s)]);
  const models = [
    { name: 'demo', workers: [sim.worker()] },
    { name: 'large', tokenizer, workers: [engine.worker()] },
  ];
  const router = await Router.start(s, { models, probe: { enabled: false }, limits: { memory: '256MiB' } });
  await Promise.all([router.allUp('demo'), router.allUp('large')]);
  assert.equal(await router.metric('baton_memory_limit_bytes'), BUDGET);
  const warm = chat('warm');
  checkExact(await ask(router, warm), warm);
  const idle = await memoryOf(router);
  // Sanitizers map terabytes, and hold back what is freed: of such a process only the answers are judged.
  const measurable = idle.virtual < 2 ** 40;
  const length = (measurable ? 16 : 4) * MIB;
  const short = load(s, router, { width: 4 });

  const checkPeak = async () => {
    const { peak } = await memoryOf(router);
    s.context.diagnostic(`idle ${idle.now / MIB} MiB, peak ${peak / MIB} MiB`);
    if (measurable) assert.ok(peak < idle.now + BUDGET * 1.1, `${peak / MIB} MiB, idle ${idle.now / MIB} MiB`);
  };

  await s.step('bodies that do not end', async () => {
    const part = Buffer.alloc(UNFINISHED, 'x');
    const attackers = await Promise.all(Array.from({ length: ATTACKERS }, () => RawConnection.open(router.address)));
    for (const one of attackers) one.write(head(16 * MIB)).write(part);
    const most = Math.floor(BUDGET / UNFINISHED);
    await until('what does not fit is refused', async () => (await refusals(router)) >= ATTACKERS - most, TIMEOUT_MS);
    await until('the others are there', async () => (await used(router)) > BUDGET - 2 * 16 * MIB, TIMEOUT_MS);
    assert.ok((await used(router)) <= BUDGET);

    await checkRefusal((await RawConnection.open(router.address)).write(head(40 * MIB)));
    const chunked = (await RawConnection.open(router.address)).write(chunkedHead(40 * MIB));
    await checkRefusal(chunked.write(part).write(part).write(part.subarray(0, 8 * MIB)));
    await short.next(100);
    await checkPeak();
    attackers.forEach((one) => one.destroy());
    await until('their memory is free', async () => (await used(router)) === 0, TIMEOUT_MS);
  });

  await s.step('whole bodies, one after the other', async () => {
    for (const [name, make] of Object.entries(long)) {
      assert.equal(await post(router, make(length)), name === 'noJson' ? 400 : 200, name);
      engine.legs = [];
    }
    const [, text] = long.text(length);
    const connection = (await RawConnection.open(router.address)).write(`${chunkedHead(text.length)}${text}\r\n0\r\n\r\n`);
    assert.equal((await inTime('an answer', connection.response(), TIMEOUT_MS)).status, 200);
    connection.destroy();
    engine.legs = [];
    await checkPeak();
  });

  await s.step('whole bodies together', async () => {
    const before = await refusals(router);
    const all = Object.values(long).flatMap((make) => Array.from({ length: 4 }, () => make(16 * MIB)));
    const statuses = await Promise.all(all.map((one) => post(router, one)));
    for (const status of statuses) assert.ok([200, 400, 503, undefined].includes(status), `status ${status}`);
    assert.ok(statuses.includes(200), statuses.join());
    assert.ok((await refusals(router)) > before, 'not all of them fit');
    engine.legs = [];
    await short.next(20);
    await checkPeak();
  });

  await s.step('one that can never be read', async () => {
    const connection = (await RawConnection.open(router.address)).write(head(60 * MIB));
    assert.equal((await inTime('a refusal', connection.response())).status, 413);
    connection.destroy();
  });

  await s.step('afterwards all is as before', async () => {
    const { refused, served } = await short.stop();
    assert.equal(refused, 0);
    assert.ok(served > 100);
    await until('nothing is held', async () => (await used(router)) === 0);
    if (measurable) await until('the memory goes back', async () => (await memoryOf(router)).now < idle.now + 48 * MIB);
    const large = await router.workerAt(engine);
    assert.equal(large.state, 'ready', JSON.stringify(large));
    assert.deepEqual(router.logLines('leg_failed'), []);
  });
});
