// SPDX-License-Identifier: Apache-2.0
// The client's bytes reach the engine as they were sent, apart from the spliced fields; headers by their rules.
import assert from 'node:assert/strict';

import { FakeEngine, KV_TRANSFER_PARAMS, UNKNOWN } from './support/fake_engine.mjs';
import { Router } from './support/fleet.mjs';
import { eventsOf, request } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const CHAT = '/v1/chat/completions';
const PLAIN = '{"model":"demo","messages":[{"role":"user","content":"x"}]}';

/** Bodies that a parse and a re-write would change. `LONG` makes a message of many bytes. */
const BODIES = {
  'big integers and floats as written':
    '{"model":"demo","seed":18446744073709551615,"big":123456789012345678901234567890,"f":1.0,"e":1E+2,"z":-0.0,"messages":[{"role":"user","content":"x"}]}',
  'duplicate keys':
    '{"model":"demo","extra":1,"extra":{"a":2,"a":3},"messages":[{"role":"user","content":"x","content":"y"}],"extra":[]}',
  'escapes as written':
    '{"model":"demo","messages":[{"role":"user","content":"\\u00e9\\/\\ud83d\\ude00 é 😀 \\"q\\" {\\"stream\\":true} \\\\"}],"\\u006bey":"\\u0000"}',
  'key order and white space':
    '\n { "zeta" : [ 1 ,2,\t3 ] ,\r\n\t"messages":[ {"content":"x" , "role" :"user"} ],  "alpha":{ } ,"model" : "demo" }\n ',
  'fields of the same name further down':
    '{"model":"demo","metadata":{"stream":true,"max_tokens":9,"kv_transfer_params":{"a":1}},"messages":[{"role":"user","content":"x","stream":true}],"max_tokens":40}',
  'names that hide in escapes':
    '{"model":"demo","str\\u0065am":true,"m\\u0061x_tokens":7,"messages":[{"role":"user","content":"x"}]}',
  'a field twice, the last one counts':
    '{"model":"demo","stream":false,"max_tokens":5,"messages":[{"role":"user","content":"x"}],"max_tokens":7,"stream":true}',
};
const UNTOUCHED_BY_PREFILL = /^(?!.*"(max_tokens|str\\u0065am)")/s;

const ADDED_FOR_PREFILL = /\s*,?\s*"(stream|max_tokens|n|kv_transfer_params)"\s*:\s*(false|1|\{[^{}]*\})\s*(?=[,}])/g;
const escaped = KV_TRANSFER_PARAMS.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const ADDED_FOR_DECODE = new RegExp(`\\s*,?\\s*"kv_transfer_params"\\s*:\\s*${escaped}\\s*(?=[,}])`, 'g');

/** A leg's body without what the router added. Blanks beside a splice at either end may come or go with it. */
const without = (leg, added) => edges(leg.body.toString().replace(added, ''));
const edges = (text) => text.replace(/^\s*{\s*,?\s*/, '{').replace(/\s*}\s*$/, '}');

async function fleetOfFakes(s, config = {}) {
  const prefill = await FakeEngine.start(s);
  const decode = await FakeEngine.start(s);
  const models = [{ name: 'demo', workers: [prefill.worker('prefill'), decode.worker('decode')] }];
  const router = await Router.start(s, { models, ...config });
  await router.allUp();
  return { prefill, decode, router };
}

scenario('bytes of the body', async (s) => {
  const { prefill, decode, router } = await fleetOfFakes(s);
  const whole = await FakeEngine.start(s);
  const alone = await Router.start(s, { models: [{ name: 'demo', workers: [whole.worker()] }] });
  await alone.allUp();
  for (const [name, body] of Object.entries(BODIES)) {
    await s.step(`${name}, aggregated`, async () => {
      const answer = await request(alone.address, { path: CHAT, body });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(whole.legs.at(-1).body.toString(), body);
    });
    await s.step(`${name}, handed over`, async () => {
      const answer = await request(router.address, { path: CHAT, body });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(without(decode.legs.at(-1), ADDED_FOR_DECODE), edges(body));
      const leg = prefill.legs.at(-1);
      if (UNTOUCHED_BY_PREFILL.test(body)) assert.equal(without(leg, ADDED_FOR_PREFILL), edges(body));
      const sent = JSON.parse(leg.body);
      assert.equal(sent.stream, false);
      assert.equal(sent.max_tokens, 1);
      assert.equal(sent.kv_transfer_params.do_remote_decode, true);
    });
  }
  await s.step('eight MiB of messages', async () => {
    const turns = Array.from({ length: 8192 }, (_, i) => `{"role":"user","content":"${String(i).padStart(980, 'é')}"}`);
    const body = `{"model":"demo","messages":[${turns.join(',')}],"seed":18446744073709551615}`;
    assert.ok(Buffer.byteLength(body) > 8 << 20);
    assert.equal((await request(alone.address, { path: CHAT, body })).status, 200);
    assert.ok(whole.legs.at(-1).body.equals(Buffer.from(body)), 'aggregated leg');
    assert.equal((await request(router.address, { path: CHAT, body })).status, 200);
    for (const engine of [prefill, decode]) {
      assert.ok(engine.legs.at(-1).body.includes(`[${turns.join(',')}]`), 'messages of a leg');
    }
  });
});

scenario('what the engine adds to its answer reaches the client', async (s) => {
  const { router } = await fleetOfFakes(s);
  const answer = await request(router.address, { path: CHAT, body: PLAIN });
  assert.ok(answer.text.includes(UNKNOWN));
  assert.ok(answer.text.includes('"x_more":{"a":[1.0]}'));
  const streamed = await request(router.address, { path: CHAT, body: PLAIN.replace('{', '{"stream":true,') });
  const events = eventsOf(streamed.text);
  assert.equal(events.at(-1), '[DONE]');
  for (const event of events.slice(0, -1)) assert.ok(event.includes(UNKNOWN));
  assert.match(streamed.headers['content-type'], /^text\/event-stream/);
});

scenario('a client error of the engine reaches the client byte for byte', async (s) => {
  const { prefill, decode, router } = await fleetOfFakes(s);
  const refusals = {
    'JSON as it was written': [400, 'application/json', '{ "error":{"message":"b\\u00e4d","type":"BadRequestError","param":null,"code":400}}\n'],
    'a flat error': [422, 'application/json; charset=utf-8', '{"object":"error","message":"no","code":422}'],
    'no JSON': [404, 'text/plain', 'nothing { here'],
    'the whole request, quoted': [400, 'application/json', JSON.stringify({ detail: 'x'.repeat(300_000) })],
  };
  const post = (stream) => request(router.address, { path: CHAT, body: PLAIN.replace('{', `{"stream":${stream},`) });
  for (const [name, [status, type, body]] of Object.entries(refusals)) {
    for (const engine of [prefill, decode]) {
      for (const stream of [false, true]) {
        await s.step(`${name}, ${engine === prefill ? 'prefill' : 'decode'} leg, stream ${stream}`, async () => {
          engine.behave = (leg, response) => {
            // Only the leg that answers: what a prefill kept is taken over by another one.
            response.writeHead(status, { 'content-type': type, connection: 'keep-alive, x-hop', 'x-hop': '1' });
            response.end(body);
            return true;
          };
          const answer = await post(stream);
          engine.behave = () => false;
          assert.equal(answer.status, status, answer.text);
          assert.equal(answer.text, body);
          assert.equal(answer.headers['content-type'], type);
          assert.equal(answer.headers['x-hop'], undefined);
        });
      }
    }
  }
  await s.step('what is between the router and an engine does not', async () => {
    for (const [status, code, told] of [[401, 'engine_unauthorized', 502], [407, 'engine_unauthorized', 502],
      [408, 'engine_failed', 502], [409, 'engine_failed', 502], [429, 'engine_overloaded', 429]]) {
      prefill.behave = (leg, response) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end('{"error":{"message":"sk-secret","code":1}}');
        return true;
      };
      const answer = await post(false);
      prefill.behave = () => false;
      await router.allUp();
      assert.equal(answer.status, told, answer.text);
      assert.equal(JSON.parse(answer.text).error.code, code);
    }
  });
});

scenario('headers', async (s) => {
  const { prefill, decode, router } = await fleetOfFakes(s);
  const legs = () => [prefill.legs.at(-1), decode.legs.at(-1)];
  const call = (headers, address = router.address) => request(address, { path: CHAT, body: PLAIN, headers });

  await s.step('a request id is kept, sent to both legs and returned', async () => {
    const answer = await call({ 'X-Request-Id': 'my-id-42' });
    assert.equal(answer.headers['x-request-id'], 'my-id-42');
    for (const leg of legs()) assert.equal(leg.headers['x-request-id'], 'my-id-42');
  });
  await s.step('a request id is made up where there is none', async () => {
    const ids = [await call({}), await call({})].map((answer) => answer.headers['x-request-id']);
    assert.ok(ids[0] && ids[1] && ids[0] !== ids[1]);
    for (const leg of legs()) assert.equal(leg.headers['x-request-id'], ids[1]);
  });
  await s.step('a request id is returned with errors too', async () => {
    const answer = await request(router.address, { path: CHAT, body: '{', headers: { 'X-Request-Id': 'bad-1' } });
    assert.equal(answer.status, 400);
    assert.equal(answer.headers['x-request-id'], 'bad-1');
  });
  await s.step('the trace is carried on', async () => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    await call({ traceparent: `00-${trace}-00f067aa0ba902b7-01`, tracestate: 'vendor=1' });
    for (const leg of legs()) {
      assert.match(leg.headers.traceparent, new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
      assert.equal(leg.headers.tracestate, 'vendor=1');
    }
  });
  await s.step('hop-by-hop and internal headers stop here, others go on', async () => {
    await call({
      Connection: 'keep-alive, X-Secret-Hop', 'X-Secret-Hop': '1', TE: 'trailers', 'Proxy-Authorization': 'Basic eA==',
      'Keep-Alive': 'timeout=9', 'X-Baton-Worker': '1', 'x-dynamo-worker': '1', 'X-Custom': 'stays',
    });
    for (const leg of legs()) {
      for (const name of ['x-secret-hop', 'te', 'proxy-authorization', 'keep-alive', 'x-baton-worker', 'x-dynamo-worker']) {
        assert.equal(leg.headers[name], undefined, name);
      }
      assert.equal(leg.headers['x-custom'], 'stays');
      assert.equal(leg.rawHeaders.filter((text) => /^(content-length|host)$/i.test(text)).length, 2);
    }
  });
  await s.step('authorization goes to the engine but never to the log', async () => {
    await call({ Authorization: 'Bearer sk-very-secret', 'X-Request-Id': 'auth-1' });
    for (const leg of legs()) assert.equal(leg.headers.authorization, 'Bearer sk-very-secret');
    await router.requestLine('auth-1');
    assert.ok(!router.process.stderr.includes('sk-very-secret'));
  });
  await s.step('a key for the router stays with the router', async () => {
    const models = [{ name: 'demo', workers: [prefill.worker('prefill'), decode.worker('decode')] }];
    const guarded = await Router.start(s, { models, api_keys: ['sk-router'] });
    await guarded.allUp();
    assert.equal((await call({ Authorization: 'Bearer sk-router' }, guarded.address)).status, 200);
    for (const leg of legs()) assert.equal(leg.headers.authorization, undefined);
    await until('a log', () => guarded.process.stderr.length > 0);
    assert.ok(!guarded.process.stderr.includes('sk-router'));
  });
});
