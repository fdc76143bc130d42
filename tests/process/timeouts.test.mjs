// SPDX-License-Identifier: Apache-2.0
// Time that is over: of a worker that sends bytes but no tokens, and of a request, at every phase. The client is told at once, and
// nothing stays booked or pinned.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { ask, chat, CHAT, checkRefused, completion } from './support/ask.mjs';
import { FakeEngine } from './support/fake_engine.mjs';
import { ENGINES, Fleet, Router } from './support/fleet.mjs';
import { eventsOf, RawConnection, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const STREAM_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunk = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const delta = (json) => chunk(`data: {"choices":[{"index":0,"delta":${json},"finish_reason":null}]}\n\n`);
const TOKEN = delta('{"content":"a"}');
const FINISH = chunk('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
const DRIP_MS = 20;

/** What a worker sends again and again instead of a token: [what came before, what is repeated]. */
const IDLE_TALK = {
  'interim heads': ['', 'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n'],
  'a head, line by line': ['HTTP/1.1 200 OK\r\n', 'X-A: b\r\n'],
  'blank lines before a head': ['', '\r\n'],
  comments: [STREAM_HEAD, chunk(': ping\n\n')],
  'empty data': [STREAM_HEAD, chunk('data:\n\n')],
  'who speaks': [STREAM_HEAD, delta('{"role":"assistant","content":""}')],
  'empty deltas': [STREAM_HEAD, delta('{}')],
  'an event byte by byte': [`${STREAM_HEAD}${chunk('data: {"choices":"')}`, chunk('x')],
  'a chunk size without end': [`${STREAM_HEAD}1;`, 'x'],
};
const WHOLE = {
  'a whole answer byte by byte': ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n{', ' '],
};

/** Has the engine send `before` and then `again` every few milliseconds until it is left. */
function drip(engine, [before, again]) {
  engine.behave = (_, { socket }) => {
    socket.write(before);
    const timer = setInterval(() => socket.write(again), DRIP_MS);
    socket.on('error', () => {}).on('close', () => clearInterval(timer));
    return true;
  };
}

const nothingRuns = (router) => until('nothing runs', async () => (await router.inFlight()) === 0);

scenario('a worker that sends everything but tokens', async (s) => {
  const engine = await FakeEngine.start(s);
  const router = await Router.start(s, {
    timeouts: { first_byte: '700ms', idle: '500ms' },
    health: { failures: 1000, backoff: '10ms', backoff_max: '10ms' },
    models: [{ name: 'demo', retries: 0, workers: [engine.worker()] }],
  });
  await router.allUp();
  const told = async (bytes, stream) => {
    drip(engine, bytes);
    const answer = await ask(router, chat('struck', { stream }));
    assert.equal(answer.error?.code, 'engine_timeout', answer.raw);
    assert.ok(!answer.done);
    await nothingRuns(router);
  };
  for (const [name, bytes] of Object.entries(IDLE_TALK)) {
    await s.step(`${name}, before the first token`, () => told(bytes, true));
  }
  for (const [name, [before, again]] of Object.entries(IDLE_TALK).filter(([, [before]]) => before.startsWith(STREAM_HEAD))) {
    await s.step(`${name}, after a token`, () => told([before.replace(STREAM_HEAD, STREAM_HEAD + TOKEN), again], true));
  }
  for (const [name, bytes] of Object.entries({ ...WHOLE, 'interim heads': IDLE_TALK['interim heads'] })) {
    await s.step(`${name}, not streamed`, () => told(bytes, false));
  }
  await s.step('tokens come for as long as they come', async () => {
    engine.behave = (_, { socket }) => {
      socket.write(STREAM_HEAD + TOKEN);
      let left = 60; // of them, which take more than twice timeouts.idle
      const timer = setInterval(() => {
        if (--left > 0) return socket.write(TOKEN);
        clearInterval(timer);
        return socket.write(`${FINISH}0\r\n\r\n`);
      }, DRIP_MS);
      socket.on('close', () => clearInterval(timer));
      return true;
    };
    const answer = await ask(router, chat('slow', { stream: true }));
    assert.ok(answer.done, answer.raw);
    assert.equal(answer.text, 'a'.repeat(60));
  });
});

scenario('a prefill worker that sends everything but its answer', async (s) => {
  const [prefill, decode] = [await FakeEngine.start(s), await FakeEngine.start(s)];
  const router = await Router.start(s, {
    timeouts: { first_byte: '700ms', idle: '500ms' },
    health: { failures: 1000, backoff: '10ms', backoff_max: '10ms' },
    models: [{ name: 'demo', retries: 0, workers: [prefill.worker('prefill'), decode.worker('decode')] }],
  });
  await router.allUp();
  for (const name of ['interim heads', 'a head, line by line', 'blank lines before a head']) {
    await s.step(name, async () => {
      drip(prefill, IDLE_TALK[name]);
      const answer = await ask(router, chat('struck', { stream: true }));
      checkRefused(answer, 504, 'engine_timeout');
      await nothingRuns(router);
    });
  }
  await s.step('its body, byte by byte', async () => {
    drip(prefill, WHOLE['a whole answer byte by byte']);
    checkRefused(await ask(router, chat('struck', { stream: true })), 504, 'engine_timeout');
    await nothingRuns(router);
  });
  assert.equal(decode.legs.length, 0);
});

const TOO_LATE = 'deadline_exceeded';
const within = (ms) => ({ 'X-Request-Timeout-Ms': String(ms) });
const LONG = { max_tokens: 200 };

/** The error that ends a stream which has begun, and not with [DONE]. */
function checkCut(answer) {
  assert.equal(answer.status, 200, answer.raw);
  const events = eventsOf(answer.raw);
  assert.equal(JSON.parse(events.at(-1)).error.code, TOO_LATE, answer.raw);
  assert.ok(events.length > 1, 'some of the answer came before');
}

const config = (more = {}) => ({ threads: 1, timeouts: { first_byte: '30s', idle: '30s', handoff_grace: '1500ms', ...more } });

describe('a request whose time is over', { concurrency: 3 }, () => {
  for (const engine of ENGINES) {
    scenario(`${engine}: at every phase`, async (s) => {
      const fleet = await Fleet.start(s, { engine, sim: { decodeMs: 1, minOutput: 200, maxOutput: 200 }, config: config() });
      const [[prefill], [decode]] = [fleet.of('prefill'), fleet.of('decode')];
      const late = async (sim, fault, body, check, time = 600) => {
        await sim.fault({ count: 1, ...fault });
        try {
          check(await ask(fleet.router, body, within(time)));
        } finally {
          await sim.clearFaults();
        }
        await fleet.settle();
      };
      const refused = (answer) => checkRefused(answer, 504, TOO_LATE);
      const HANG = { kind: 'hang' };
      for (const stream of [true, false]) {
        const how = stream ? 'streamed' : 'whole';
        await s.step(`while prefill hangs, ${how}`, () => late(prefill, HANG, chat('Late', { stream, ...LONG }), refused));
        await s.step(`while decode hangs, ${how}`, () => late(decode, HANG, chat('Late', { stream, ...LONG }), refused));
      }
      await s.step('in the middle of the stream', () =>
        late(decode, { kind: 'hang_stream', after_tokens: 3 }, chat('Late', { stream: true, ...LONG }), checkCut, 5000));
      await s.step('for several choices', () =>
        late(prefill, { ...HANG, count: 2 }, completion('Late', { n: 2, stream: true, ...LONG }), refused));
      assert.equal(await fleet.router.metric('baton_limit_refusals_total', { limit: 'request' }), 6);
      assert.equal(await fleet.router.metric('baton_requests_total', { outcome: TOO_LATE }), 6);
      await s.step('no worker is blamed', () => fleet.router.allUp());
      assert.deepEqual(fleet.router.logLines('leg_failed'), []);
    });
  }

  scenario('while it waits for a worker', async (s) => {
    const fleet = await Fleet.start(s, {
      counts: { aggregated: 1 },
      sim: { minOutput: 200, maxOutput: 200 },
      config: config(),
      model: { policy: 'kv', queue: { busy_tokens: 0 } },
    });
    const [sim] = fleet.sims;
    await sim.fault({ kind: 'hang', count: 1 });
    const first = await RawConnection.open(fleet.router.address);
    first.write(wire('POST', CHAT, { 'Content-Type': 'application/json' }, JSON.stringify(chat('First', { stream: true }))));
    await until('the worker is busy', async () => (await fleet.router.metric('baton_worker_prefill_tokens')) > 0);
    checkRefused(await ask(fleet.router, chat('Second'), within(300)), 504, TOO_LATE);
    assert.equal(await fleet.router.metric('baton_queue_requests'), 0, 'it has left the queue');
    assert.equal((await sim.state()).requests, 1, 'no worker has seen it');
    first.destroy();
    await sim.clearFaults();
    await fleet.settle();
  });

  scenario('the configured time, and who may change it', async (s) => {
    const fleet = await Fleet.start(s, {
      counts: { aggregated: 1 },
      config: { ...config({ request: '400ms' }), trust_routing_headers: true, trusted_sources: ['127.0.0.2'] },
    });
    const [sim] = fleet.sims;
    const from = async (address, headers) => {
      const connection = await RawConnection.open(fleet.router.address, undefined, address);
      const body = JSON.stringify(chat('Whose time', { max_tokens: 3 }));
      connection.write(wire('POST', CHAT, { 'Content-Type': 'application/json', ...headers }, body));
      const answer = await inTime('an answer', connection.response());
      return { ...answer, body: JSON.parse(answer.text), connection };
    };
    const slow = { kind: 'slow', delay_ms: 1200, count: 1 };
    await s.step('the configured one', async () => {
      await sim.fault(slow);
      const answer = await from('127.0.0.1', {});
      assert.equal(answer.body.error?.code, TOO_LATE, answer.text);
      assert.match(answer.body.error.message, /400 ms \(timeouts\.request\)/);
      assert.equal(answer.headers.connection, 'close');
      await inTime('the connection closes', answer.connection.closed());
      await sim.clearFaults();
    });
    await s.step('nothing lengthens it', async () => {
      await sim.fault(slow);
      const answer = await from('127.0.0.1', within(60_000));
      assert.equal(answer.body.error?.code, TOO_LATE, answer.text);
      await sim.clearFaults();
    });
    await s.step('but a trusted source', async () => {
      await sim.fault(slow);
      const answer = await from('127.0.0.2', within(60_000));
      assert.equal(answer.status, 200, answer.text);
      answer.connection.destroy();
      await sim.clearFaults();
    });
    await s.step('a time that makes no sense', async () => {
      const answer = await from('127.0.0.1', { 'X-Request-Timeout-Ms': '1s' });
      assert.equal(answer.status, 400);
      assert.equal(answer.body.error.param, 'X-Request-Timeout-Ms');
      answer.connection.destroy();
    });
    await fleet.settle();
  });
});
