// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 by the byte: what a careful client may do works, limits are told. What a smuggler tries: hostile_client.test.mjs.
import assert from 'node:assert/strict';

import { Fleet, Router } from './support/fleet.mjs';
import { RawConnection, readAnswer, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { refusal, withFake } from './support/raw_client.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const CHAT = '/v1/chat/completions';
const chat = (text, more = {}) => ({ model: 'demo', messages: [{ role: 'user', content: text }], ...more });
const post = (body, headers = {}) => wire('POST', CHAT, headers, JSON.stringify(body));

const chunked = (text, size) => {
  let out = '';
  for (let at = 0; at < text.length; at += size) {
    const part = text.slice(at, at + size);
    out += `${part.length.toString(16)};ext=1\r\n${part}\r\n`;
  }
  return `${out}0\r\nX-Trailer: 1\r\n\r\n`;
};

function checkExact(response, body) {
  const answer = readAnswer(response);
  assert.equal(answer.text, expectedAnswer(body).choices[0].text);
  assert.ok(answer.done);
}

scenario('the client address tells that the process serves, without a key and without workers', async (s) => {
  const router = await Router.start(s, { api_keys: ['sk-1'], models: [{ name: 'demo', workers: [] }] });
  const connection = await RawConnection.open(router.address);
  const get = async (path) => {
    const response = await connection.write(wire('GET', path)).response();
    return [response.status, JSON.parse(response.text)];
  };
  assert.deepEqual(await get('/health'), [200, { status: 'ok' }]);
  assert.deepEqual(await get('/ping'), [200, { status: 'ok' }]);
  const [status, { version }] = await get('/version');
  assert.equal(status, 200);
  assert.match(version, /^\d+\.\d+/);
  connection.destroy();
});

scenario('connections carry requests one after another', async (s) => {
  const { router } = await Fleet.start(s);
  await s.step('keep-alive, streamed and whole in turn', async () => {
    const connection = await RawConnection.open(router.address);
    for (let i = 0; i < 6; ++i) {
      const body = chat(`turn ${i}`, { stream: i % 2 === 0 });
      checkExact(await connection.write(post(body)).response(), body);
    }
    connection.destroy();
  });
  await s.step('pipelined requests are answered in order', async () => {
    const connection = await RawConnection.open(router.address);
    const bodies = Array.from({ length: 5 }, (_, i) => chat(`piped ${i}`, { stream: i % 2 === 1 }));
    const models = wire('GET', '/v1/models', { 'X-Request-Id': 'in-between' });
    connection.write(bodies.map((body) => post(body)).join('') + models + post(bodies[0]));
    for (const body of bodies) checkExact(await connection.response(), body);
    assert.equal((await connection.response()).headers['x-request-id'], 'in-between');
    checkExact(await connection.response(), bodies[0]);
    connection.destroy();
  });
  await s.step('a chunked body, byte by byte and in pieces', async () => {
    const connection = await RawConnection.open(router.address);
    for (const size of [1, 7, 1000]) {
      const body = chat(`chunks of ${size}`, { stream: true });
      const bytes = wire('POST', CHAT, { 'Transfer-Encoding': 'chunked' }, chunked(JSON.stringify(body), size));
      checkExact(await connection.write(bytes).response(), body);
    }
    connection.destroy();
  });
  await s.step('a head that arrives byte by byte', async () => {
    const connection = await RawConnection.open(router.address);
    connection.socket.setNoDelay(true);
    const body = chat('slowly');
    for (const byte of post(body)) await new Promise((resolve) => connection.socket.write(byte, resolve));
    checkExact(await connection.response(), body);
    connection.destroy();
  });
  await s.step('Expect: 100-continue', async () => {
    const connection = await RawConnection.open(router.address);
    const text = JSON.stringify(chat('expected'));
    const head = wire('POST', CHAT, { 'Content-Length': Buffer.byteLength(text), Expect: '100-continue' });
    assert.equal((await inTime('100', connection.write(head).head())).status, 100);
    checkExact(await connection.write(text).response(), JSON.parse(text));
    connection.destroy();
  });
  await s.step('an unknown expectation', async () => {
    const connection = await RawConnection.open(router.address);
    assert.equal((await connection.write(post(chat('x'), { Expect: 'miracles' })).response()).status, 417);
    connection.destroy();
  });
  await s.step('a refusal of a whole request keeps the connection', async () => {
    const connection = await RawConnection.open(router.address);
    connection.write(wire('GET', '/nowhere') + wire('GET', CHAT) + wire('POST', CHAT, {}, '{') + wire('GET', '/v1/models'));
    for (const status of [404, 405, 400, 200]) assert.equal((await inTime(`${status}`, connection.response())).status, status);
    connection.destroy();
  });
  await s.step('Connection: close and HTTP/1.0 close', async () => {
    const polite = (await RawConnection.open(router.address)).write(post(chat('bye'), { Connection: 'close' }));
    checkExact(await polite.response(), chat('bye'));
    await inTime('close', polite.closed());
    const old = (await RawConnection.open(router.address)).write('GET /v1/models HTTP/1.0\r\n\r\n');
    assert.equal((await old.response()).status, 200);
    await inTime('close', old.closed());
  });
});

scenario('methods and paths', async (s) => {
  const { open } = await withFake(s);
  const call = async (method, path) => {
    const connection = (await open()).write(wire(method, path));
    const response = await inTime('an answer', connection.response({ to: method }));
    connection.destroy();
    return response;
  };
  const head = await call('HEAD', '/v1/models');
  assert.equal(head.status, 200);
  assert.equal(Number(head.headers['content-length']), (await call('GET', '/v1/models')).text.length);
  const options = await call('OPTIONS', CHAT);
  assert.ok([200, 204].includes(options.status));
  assert.match(options.headers.allow, /POST/);
  const wrong = await call('GET', CHAT);
  assert.equal(wrong.status, 405);
  assert.match(wrong.headers.allow, /POST/);
  assert.equal(JSON.parse(wrong.text).error.code, 'method_not_allowed');
  const deletion = await call('DELETE', '/v1/models');
  assert.equal(deletion.status, 405);
  assert.match(deletion.headers.allow, /GET/);
  for (const path of ['/', '/v2/models', '/v1/chat', '/metrics', '/v1/chat/completions/x']) {
    const missing = await call('GET', path);
    assert.equal(missing.status, 404, path);
    assert.equal(JSON.parse(missing.text).error.code, 'not_found');
  }
  assert.equal((await call('GET', '/v1/models?limit=1')).status, 200, 'a query does not change the route');
});

scenario('limits are told', async (s) => {
  const { engine, router, open } = await withFake(s, {
    limits: { header_bytes: 4096, body_bytes: 10_000, connections: 4 },
    timeouts: { client_header: '400ms', client_body: '400ms', client_idle: '400ms' },
  });
  await s.step('header too large', async () => {
    const error = await refusal((await open()).write(wire('GET', '/v1/models', { 'X-Big': 'x'.repeat(8000) })), 431);
    assert.equal(error.code, 'headers_too_large');
  });
  await s.step('body too large, announced and chunked', async () => {
    const announced = await refusal((await open()).write(wire('POST', CHAT, { 'Content-Length': 10_001 })), 413);
    assert.equal(announced.code, 'payload_too_large');
    const body = chunked('x'.repeat(10_001), 1000);
    await refusal((await open()).write(wire('POST', CHAT, { 'Transfer-Encoding': 'chunked' }, body)), 413);
  });
  await s.step('body just small enough', async () => {
    const text = JSON.stringify(chat(''));
    const body = JSON.stringify(chat('x'.repeat(10_000 - text.length)));
    const connection = (await open()).write(wire('POST', CHAT, {}, body));
    assert.equal((await connection.response()).status, 200);
    connection.destroy();
  });
  await s.step('slow header and slow body', async () => {
    const header = await refusal((await open()).write('GET /v1/models HTTP/1.1\r\nHost: x\r\n'), 408);
    assert.equal(header.code, 'request_timeout');
    await refusal((await open()).write(wire('POST', CHAT, { 'Content-Length': 50 }, '{"model"')), 408);
  });
  await s.step('an idle connection is closed without a word', async () => {
    const connection = await open();
    await inTime('close', connection.closed());
    await assert.rejects(connection.response());
  });
  await s.step('too many connections', async () => {
    engine.behave = () => true; // the four stay busy
    const busy = [];
    for (let i = 0; i < 4; ++i) busy.push((await open()).write(post(chat('busy'))));
    await until('four requests at the engine', () => engine.legs.length >= 5);
    const error = await refusal((await open()).write(wire('GET', '/v1/models')), 503);
    assert.equal(error.code, 'too_many_connections');
    assert.match(error.headers['retry-after'], /^\d+$/);
    for (const connection of busy) connection.destroy();
    engine.behave = () => false;
    await until('room again', async () => {
      const connection = (await open()).write(wire('GET', '/v1/models'));
      const { status } = await connection.response();
      connection.destroy();
      return status === 200;
    });
  });
  assert.equal(router.process.exited, undefined);
});
