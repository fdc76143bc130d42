// SPDX-License-Identifier: Apache-2.0
// Connections to workers: kept and reused; one that died while it waited is replaced without the client noticing.
import assert from 'node:assert/strict';

import { FakeEngine } from './support/fake_engine.mjs';
import { Router } from './support/fleet.mjs';
import { readAnswer, request } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const body = (stream) => JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'x' }], stream });

async function setUp(s) {
  const engine = await FakeEngine.start(s);
  const config = { threads: 1, models: [{ name: 'demo', workers: [engine.worker()] }] };
  const router = await Router.start(s, config);
  const ask = async (stream = false) => readAnswer(await request(router.address, { path: '/v1/chat/completions', body: body(stream) }));
  return { engine, ask };
}

scenario('connections are reused', async (s) => {
  const { engine, ask } = await setUp(s);
  for (let i = 0; i < 20; ++i) assert.equal((await ask(i % 2 === 0)).text, 'hello');
  assert.equal(new Set(engine.legs.map((leg) => leg.connection)).size, 1, 'one connection for requests one after another');
  await Promise.all(Array.from({ length: 5 }, () => ask()));
  const used = engine.connections;
  assert.ok(used <= 7, `${used} connections for at most 5 requests at once, and for health checks`);
});

scenario('an idle connection closed by the engine is replaced', async (s) => {
  const { engine, ask } = await setUp(s);
  for (let i = 0; i < 10; ++i) {
    assert.equal((await ask(i % 2 === 0)).text, 'hello', `request ${i}`);
    engine.dropConnections();
  }
  assert.equal(engine.legs.length, 10, 'no request was sent twice');
});

scenario('a kept connection that dies under the next request is replaced before any byte was answered', async (s) => {
  const { engine, ask } = await setUp(s);
  for (const stream of [false, true]) {
    for (const close of ['end', 'resetAndDestroy']) {
      await s.step(`${stream ? 'streamed' : 'whole'}, ${close}`, async () => {
        assert.equal((await ask(stream)).text, 'hello');
        const kept = engine.legs.at(-1).connection;
        let killed = 0;
        engine.behave = (leg, response) => {
          if (leg.connection !== kept) return false;
          ++killed;
          response.socket[close]();
          return true;
        };
        const answer = await ask(stream);
        assert.equal(killed, 1, 'the kept connection was used and died');
        assert.equal(answer.text, 'hello');
        assert.ok(answer.done);
        engine.behave = () => false;
      });
    }
  }
});

scenario('what an engine sends after its answer never reaches another client', async (s) => {
  const { engine, ask } = await setUp(s);
  const stray = '{"choices":[{"index":0,"message":{"role":"assistant","content":"for another"},"finish_reason":"stop"}]}';
  const late = {
    'a second answer': `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${stray.length}\r\n\r\n${stray}`,
    'a body beyond its length': stray,
    'an interim answer': 'HTTP/1.1 100 Continue\r\n\r\n',
    'a blank line': '\r\n',
  };
  for (const [what, bytes] of Object.entries(late)) {
    await s.step(what, async () => {
      assert.equal((await ask()).text, 'hello');
      const kept = [...engine.sockets].find((socket) => socket.number === engine.legs.at(-1).connection);
      await new Promise((resolve) => kept.write(bytes, resolve));
      const asked = engine.legs.length;
      const answer = await ask();
      assert.equal(answer.status, 200);
      assert.equal(answer.text, 'hello');
      assert.equal(engine.legs.length, asked + 1, 'it was sent once');
      assert.notEqual(engine.legs.at(-1).connection, kept.number);
    });
  }
});

scenario('a connection that failed mid-answer is not used again', async (s) => {
  const { engine, ask } = await setUp(s);
  engine.behave = (leg, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
    response.write('{"id":');
    response.socket.end();
    return true;
  };
  const broken = await ask();
  assert.equal(broken.status, 502);
  assert.equal(typeof broken.error.message, 'string');
  engine.behave = () => false;
  assert.equal((await ask()).text, 'hello');
  await until('only live connections', () => engine.sockets.size <= 2); // one of them the health check's
});
