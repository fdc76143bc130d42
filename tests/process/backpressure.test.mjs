// SPDX-License-Identifier: Apache-2.0
// A reader that pauses costs the router no memory and loses nothing.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

import { FakeEngine, bulkStream } from './support/fake_engine.mjs';
import { Router } from './support/fleet.mjs';
import { RawConnection, readAnswer, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const CHAT = '/v1/chat/completions';
const EVENTS = 12_000;
const EVENT_BYTES = 4_096;
const MAY_GROW_BY = 8 << 20;
const QUIET_MS = 1_500;

const chat = (text) => ({ model: 'demo', messages: [{ role: 'user', content: text }], stream: true });

async function residentBytes(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024;
}

scenario('a client that stops reading', async (s) => {
  const engine = await FakeEngine.start(s);
  // Freed memory that a sanitizer holds back would count as growth.
  const env = { ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64` };
  const router = await Router.start(s, { models: [{ name: 'demo', workers: [engine.worker()] }] }, env);
  let sent = 0;
  let events = EVENTS / 10;
  engine.behave = (leg, response) => {
    bulkStream(response, events, EVENT_BYTES, (bytes) => (sent = bytes));
    return true;
  };
  const bytes = wire('POST', CHAT, {}, JSON.stringify(chat('much')));
  // What a first stream touches once and for all is not what this is about.
  const first = (await RawConnection.open(router.address)).write(bytes);
  assert.ok(readAnswer(await inTime('a first stream', first.response())).done);
  first.destroy();
  sent = 0;
  events = EVENTS;
  const before = await residentBytes(router.process.pid);
  const connection = await RawConnection.open(router.address);
  connection.socket.pause();
  connection.write(bytes);
  let last = { sent: -1, at: Date.now() };
  await until('the engine is held back', () => {
    if (sent !== last.sent) last = { sent, at: Date.now() };
    return sent > 0 && Date.now() - last.at > QUIET_MS;
  });
  assert.ok(sent < EVENTS * EVENT_BYTES, 'the engine could not send everything');
  const grown = (await residentBytes(router.process.pid)) - before;
  assert.ok(grown < MAY_GROW_BY, `the router grew by ${grown} bytes`);
  connection.socket.resume();
  const answer = readAnswer(await inTime('the rest of the stream', connection.response(), 120_000));
  assert.ok(answer.done);
  const expected = Array.from({ length: EVENTS }, (_, i) => `${i}:${'x'.repeat(EVENT_BYTES)};`).join('');
  assert.ok(answer.text === expected, 'every byte arrived in order');
  connection.destroy();
});
