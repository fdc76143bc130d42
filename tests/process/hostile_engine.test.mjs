// SPDX-License-Identifier: Apache-2.0
// A worker that answers with whatever bytes it likes. Its client is told so, in time and in the API's own words; nothing of it
// reaches the next client, and nothing is left behind.
import assert from 'node:assert/strict';

import { ask, chat } from './support/ask.mjs';
import { FakeEngine } from './support/fake_engine.mjs';
import { Router } from './support/fleet.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const head = (...lines) => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n');
const JSON_TYPE = 'Content-Type: application/json';
const EVENTS_TYPE = 'Content-Type: text/event-stream';
const whole = (body, type = JSON_TYPE) => head(type, `Content-Length: ${Buffer.byteLength(body)}`) + body;
const chunk = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const events = (...texts) => `${head(EVENTS_TYPE, 'Transfer-Encoding: chunked')}${texts.map(chunk).join('')}0\r\n\r\n`;
const event = (json) => `data: ${json}\n\n`;
const TOKEN = event('{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}');
const DONE = event('[DONE]');
const MEBI = 1 << 20;

/** Framing that no answer may have, streamed or not. */
const FRAMING = {
  'no HTTP at all': 'hello\r\n\r\n',
  'a request instead': 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  'another protocol': 'ICY 200 OK\r\n\r\n',
  'a version that does not exist': 'HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n',
  'a head without an end': 'HTTP/1.1 200 OK\r\nX-A: 1\r\n',
  'a head of a megabyte': `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(MEBI)}\r\n\r\n`,
  'a hundred thousand fields': `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(100_000)}\r\n`,
  'a field without a name': head(': nobody', 'Content-Length: 2') + '{}',
  'a zero byte in a field': head('X-A: 1\0', 'Content-Length: 2') + '{}',
  'length and chunked': head(JSON_TYPE, 'Content-Length: 2', 'Transfer-Encoding: chunked') + '2\r\n{}\r\n0\r\n\r\n',
  'two lengths': head(JSON_TYPE, 'Content-Length: 2', 'Content-Length: 3') + '{}',
  'a negative length': head(JSON_TYPE, 'Content-Length: -2') + '{}',
  'a length beyond numbers': head(JSON_TYPE, 'Content-Length: 999999999999999999999') + '{}',
  'a length that is not reached': head(JSON_TYPE, 'Content-Length: 100') + '{',
  'an encoding that was not asked for': head(JSON_TYPE, 'Transfer-Encoding: gzip') + '{}',
  'a chunk without a size': head(EVENTS_TYPE, 'Transfer-Encoding: chunked') + 'zz\r\n',
  'a chunk beyond numbers': head(EVENTS_TYPE, 'Transfer-Encoding: chunked') + 'ffffffffffffffffff\r\n',
  'a negative chunk': head(EVENTS_TYPE, 'Transfer-Encoding: chunked') + '-1\r\n',
  'a chunk extension without an end': `${head(EVENTS_TYPE, 'Transfer-Encoding: chunked')}1;${'x'.repeat(MEBI)}`,
  'a chunk that does not end where it says': `${head(EVENTS_TYPE, 'Transfer-Encoding: chunked')}1\r\nabc\r\n0\r\n\r\n`,
  'chunks without a last one': `${head(EVENTS_TYPE, 'Transfer-Encoding: chunked')}${chunk(TOKEN)}`,
  'another protocol from now on': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n',
  'interim answers only': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(10_000),
  'nothing': '',
};

const BODIES = {
  'no content': 'HTTP/1.1 204 No Content\r\n\r\n',
  'not modified': 'HTTP/1.1 304 Not Modified\r\n\r\n',
  'a part of the content': `HTTP/1.1 206 Partial Content\r\n${JSON_TYPE}\r\nContent-Length: 2\r\n\r\n{}`,
  'something was made': `HTTP/1.1 201 Created\r\n${JSON_TYPE}\r\nContent-Length: 2\r\n\r\n{}`,
  'moved elsewhere': 'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n',
  'an empty body': whole(''),
  'no JSON': whole('hello'),
  'half a JSON': whole('{"choices":['),
  'a list': whole('[]'),
  'bytes that are no text': Buffer.concat([Buffer.from(head(JSON_TYPE, 'Content-Length: 4')), Buffer.from([0xff, 0xfe, 0, 0x80])]),
  'nesting without end': whole(`{"choices":${'['.repeat(100_000)}`),
  'more than an answer may be': whole(`{"id":"${'x'.repeat(2 * MEBI)}"}`),
};

const STREAMS = {
  'no token, no end': events(': nothing\n\n'),
  'no JSON in an event': events(TOKEN, event('hello'), DONE),
  'a list in an event': events(TOKEN, event('[]'), DONE),
  'choices that are none': events(TOKEN, event('{"choices":"a"}'), DONE),
  'an event without an end': events(TOKEN, `data: ${'x'.repeat(2 * MEBI)}`),
  'a line without an end': events(TOKEN, `${'x'.repeat(2 * MEBI)}`),
  'bytes that are no text': events(TOKEN, event('"\xff\xfe"')),
  'no end after a token': events(TOKEN),
  'an error event': events(TOKEN, event('{"error":{"message":"broken","type":"x","code":500}}'), DONE),
};

/** Long ones are read by other threads than short ones; what the client gets is the same. */
const LONG = 'x'.repeat(800_000);
const LONG_ANSWERS = {
  'a long answer': { bytes: whole(`{"choices":[{"index":0,"message":{"content":"${LONG}"},"finish_reason":"stop"}]}`) },
  'a long event': {
    stream: true,
    bytes: events(TOKEN, event(`{"choices":[{"index":0,"delta":{"content":"${LONG}"},"finish_reason":"stop"}]}`), DONE),
  },
  'a long refusal': { status: 400, bytes: whole(`{"error":{"message":"${LONG}"}}`).replace('200 OK', '400 Bad Request') },
};

/** Every request is struck by the same bytes, whatever it is retried on. */
async function strike(s, { bytes, stream }) {
  const { engine, router } = s.parts;
  engine.behave = (_, response) => {
    response.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    response.socket.end();
    return true;
  };
  const answer = await ask(router, chat('struck', { stream }));
  engine.behave = () => false;
  // Nothing of it is in the way of the next one.
  await router.allUp();
  const next = await ask(router, chat('next', { stream }));
  assert.equal(next.text, 'hello', next.raw);
  assert.ok(next.done);
  return answer;
}

/** An error before the first byte has a status; one after it ends the stream. */
function checkTold(answer) {
  assert.ok(answer.error, `told as an error: ${answer.raw.slice(0, 300)}`);
  assert.equal(typeof answer.error.message, 'string');
  if (answer.status !== 200) assert.ok([502, 504].includes(answer.status), `status ${answer.status}`);
  assert.ok(!answer.raw.includes('\0'), 'nothing that would break a terminal');
}

scenario('an engine whose answers are no answers', async (s) => {
  const engine = await FakeEngine.start(s);
  const router = await Router.start(s, {
    limits: { response_bytes: '1MiB' },
    timeouts: { first_byte: '5s', idle: '5s' },
    health: { backoff: '10ms', backoff_max: '10ms' },
    models: [{ name: 'demo', workers: [engine.worker()] }],
  });
  await router.allUp();
  s.parts = { engine, router };
  const cases = [
    ...Object.entries(FRAMING).flatMap(([name, bytes]) => [false, true].map((stream) => ({ name, bytes, stream }))),
    ...Object.entries(BODIES).map(([name, bytes]) => ({ name, bytes, stream: false })),
    ...Object.entries(STREAMS).map(([name, bytes]) => ({ name, bytes, stream: true })),
  ];
  for (const one of cases) {
    await s.step(`${one.name}${one.stream ? ', streamed' : ''}`, async () => checkTold(await strike(s, one)));
  }
  for (const [name, { bytes, stream = false, status = 200 }] of Object.entries(LONG_ANSWERS)) {
    await s.step(name, async () => {
      const answer = await strike(s, { bytes, stream });
      assert.equal(answer.status, status);
      assert.ok(answer.raw.includes(LONG), `${answer.raw.length} bytes`);
    });
  }
  await until('nothing runs', async () => (await router.inFlight()) === 0);
  assert.equal(await router.metric('baton_escaped_exceptions_total'), 0);
});
