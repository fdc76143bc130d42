// SPDX-License-Identifier: Apache-2.0
// Limits of each client: what is too much is refused, with when to come again; other clients do not notice.
import assert from 'node:assert/strict';
import { APIError, RateLimitError } from 'openai';

import { CHAT, chat } from './support/ask.mjs';
import { RawConnection, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { withFake } from './support/raw_client.mjs';
import { scenario } from './support/scenario.mjs';

const post = (body, headers = {}) => wire('POST', CHAT, headers, JSON.stringify(body));
const models = (headers = {}) => wire('GET', '/v1/models', headers);
const bearer = (key) => ({ Authorization: `Bearer ${key}` });

/** One request on a connection of its own: {status, headers, text}. */
async function ask(router, bytes, from) {
  const connection = await RawConnection.open(router.address, undefined, from);
  try {
    return await inTime('an answer', connection.write(bytes).response());
  } finally {
    connection.destroy();
  }
}

/** The details of a refusal. */
function checkLimited(answer, kind) {
  assert.equal(answer.status, 429, answer.text);
  assert.match(answer.headers['retry-after'], /^[1-9]\d*$/);
  const { error } = JSON.parse(answer.text);
  assert.equal(error.type, 'rate_limit_error');
  assert.equal(error.code, 'rate_limited');
  assert.equal(error.details.limit_kind, kind);
  return error.details;
}

const refusals = (router, limit) => router.metric('baton_limit_refusals_total', { limit });

scenario('a key has so many requests at a time, and another key its own', async (s) => {
  const { engine, router } = await withFake(s, { api_keys: ['sk-a', 'sk-b'], limits: { client_requests: 2 } });
  await router.allUp();
  const held = [];
  engine.behave = ({ body }, response) => body.includes('hold me') && held.push(response) > 0;
  const busy = [];
  for (let i = 0; i < 2; ++i) {
    busy.push((await RawConnection.open(router.address)).write(post(chat('hold me'), bearer('sk-a'))));
  }
  await until('two requests run', () => held.length === 2);
  const refused = await ask(router, post(chat('one more'), bearer('sk-a')), '127.0.0.2');
  assert.equal(checkLimited(refused, 'client_requests').limit, 2);
  assert.equal((await ask(router, post(chat('mine'), bearer('sk-b')))).status, 200);
  const client = router.client({ apiKey: 'sk-a' });
  await assert.rejects(client.chat.completions.create(chat('one more')), (error) => {
    assert.ok(error instanceof RateLimitError && error instanceof APIError);
    assert.equal(error.code, 'rate_limited');
    return true;
  });
  const head = wire('POST', CHAT, { ...bearer('sk-a'), 'Content-Length': 10_000_000 });
  checkLimited(await ask(router, head), 'client_requests'); // no byte of the body was sent
  assert.equal((await ask(router, wire('GET', '/health'))).status, 200);
  for (const connection of busy) connection.destroy();
  await until('there is room again', async () => (await ask(router, post(chat('now'), bearer('sk-a')))).status === 200);
  assert.ok((await refusals(router, 'client_requests')) >= 3);
  assert.ok((await router.metric('baton_http_refused_total', { kind: 'rate_limited' })) >= 3);
});

scenario('an address sends so many requests a second, and is told when to go on', async (s) => {
  // Slow enough that the machine may be slow, too.
  const { open, router } = await withFake(s, { limits: { client_rate: 0.2, client_burst: 2 } });
  const mine = await open();
  for (let i = 0; i < 2; ++i) assert.equal((await mine.write(models()).response()).status, 200);
  const refused = await inTime('a refusal', mine.write(post(chat('one more'))).response());
  const { wait_ms: wait } = checkLimited(refused, 'client_rate');
  const after = Number(refused.headers['retry-after']) * 1000;
  assert.ok(wait > 0 && wait <= after && after <= 5_000, `${wait} ms, told as ${after} ms`);
  assert.equal((await ask(router, models(), '127.0.0.2')).status, 200, 'another address');
  for (const path of ['/health', '/ping', '/version']) assert.equal((await ask(router, wire('GET', path))).status, 200, path);
  for (let i = 0; i < 5; ++i) assert.ok((await router.readiness()).models.demo, 'the admin address has no such limit');
  await new Promise((resolve) => setTimeout(resolve, after));
  assert.equal((await mine.write(models()).response()).status, 200, 'there is room, and the connection stayed');
  assert.equal(await refusals(router, 'client_rate'), 1);
  mine.destroy();
});

scenario('an address has so many connections', async (s) => {
  const { router } = await withFake(s, { limits: { client_connections: 2 } });
  const open = (from) => RawConnection.open(router.address, undefined, from);
  const mine = [];
  for (let i = 0; i < 2; ++i) {
    mine.push(await open());
    assert.equal((await mine[i].write(models()).response()).status, 200);
  }
  const third = await open();
  checkLimited(await inTime('a refusal', third.response()), 'client_connections');
  await inTime('it is closed', third.closed());
  assert.equal((await ask(router, models(), '127.0.0.2')).status, 200);
  assert.equal((await mine[0].write(models()).response()).status, 200, 'those that are open stay');
  mine.shift().destroy();
  await until('room again', async () => {
    const connection = (await open()).write(models());
    const { status } = await connection.response();
    connection.destroy();
    return status === 200;
  });
  assert.ok((await refusals(router, 'client_connections')) >= 1);
  mine[0].destroy();
});
