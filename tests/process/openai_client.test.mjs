// SPDX-License-Identifier: Apache-2.0
// npm's official client against the router: models, refusals, aborts, and answers the prefill worker already finished.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

import { ENGINES, Fleet } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer, firstWord } from './support/text.mjs';

const hello = (more = {}) => ({ model: 'demo', messages: [{ role: 'user', content: 'Hello there.' }], ...more });

async function refusal(promise) {
  const error = await inTime('a refusal', promise.then(() => undefined, (reason) => reason));
  assert.ok(error instanceof OpenAI.APIError, `an API error, not ${error}`);
  return error;
}

async function refusalOf(address, body, headers = {}) {
  const answer = await request(address, { path: '/v1/chat/completions', body, headers });
  const { error } = JSON.parse(answer.text);
  assert.equal(typeof error.message, 'string');
  assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
  return { status: answer.status, ...error };
}

scenario('models are listed and found by name and alias', async (s) => {
  const { router } = await Fleet.start(s, { counts: { aggregated: 1 }, model: { aliases: ['gpt-demo', 'team/demo'] } });
  const client = router.client();
  const listed = [];
  for await (const model of client.models.list()) listed.push(model.id);
  assert.ok(listed.includes('demo'));
  for (const name of ['demo', 'gpt-demo', 'team/demo']) {
    const model = await client.models.retrieve(name);
    assert.equal(model.object, 'model');
  }
  const error = await refusal(client.models.retrieve('nobody'));
  assert.equal(error.status, 404);
  assert.equal(error.code, 'model_not_found');
  const body = hello({ model: 'gpt-demo' });
  const answer = await client.chat.completions.create(body);
  assert.equal(answer.choices[0].message.content, expectedAnswer(body).choices[0].text);
});

scenario('bad requests are refused in the OpenAI shape', async (s) => {
  const fleet = await Fleet.start(s);
  const { address } = fleet.router;
  const client = fleet.router.client();
  await s.step('unknown model', async () => {
    const error = await refusal(client.chat.completions.create(hello({ model: 'nobody' })));
    assert.equal(error.status, 404);
    assert.equal(error.code, 'model_not_found');
    assert.match(error.message, /nobody/);
  });
  const cases = {
    'not JSON': ['{"model": "demo", ', 'invalid_json'],
    'not an object': ['[1, 2]', undefined],
    'text after the object': ['{"model":"demo","messages":[]} x', 'invalid_json'],
    'empty body': ['', undefined],
    'no model': ['{"messages":[{"role":"user","content":"x"}]}', undefined],
    'model is a number': ['{"model":7,"messages":[{"role":"user","content":"x"}]}', undefined],
    'no messages': ['{"model":"demo"}', undefined],
    'stream is a string': ['{"model":"demo","stream":"yes","messages":[{"role":"user","content":"x"}]}', undefined],
    'nested without end': ['{"model":"demo","messages":' + '['.repeat(100_000), undefined],
  };
  for (const [name, [body, code]] of Object.entries(cases)) {
    await s.step(name, async () => {
      const error = await refusalOf(address, body);
      assert.equal(error.status, 400);
      assert.equal(error.type, 'invalid_request_error');
      if (code) assert.equal(error.code, code);
    });
  }
  await s.step('what the engine refuses is refused with its reason', async () => {
    const error = await refusal(client.chat.completions.create(hello({ stream_options: { include_usage: true } })));
    assert.equal(error.status, 400);
  });
  await s.step('nothing is left in the fleet', () => fleet.settle());
});

scenario('api keys', async (s) => {
  const { router } = await Fleet.start(s, { config: { api_keys: ['key-one', 'key-two'] } });
  for (const apiKey of ['key-one', 'key-two']) {
    await router.client({ apiKey }).chat.completions.create(hello());
    await router.client({ apiKey }).models.list();
  }
  for (const apiKey of ['key-on', 'key-onee', 'KEY-ONE', 'key-three']) {
    const error = await refusal(router.client({ apiKey }).chat.completions.create(hello()));
    assert.equal(error.status, 401);
    assert.equal(error.code, 'invalid_api_key');
    assert.ok(!error.message.includes(apiKey), 'the wrong key is not repeated');
  }
  assert.equal((await refusalOf(router.address, JSON.stringify(hello()))).status, 401);
  for (const key of ['key-one', 'key-two', 'key-three']) {
    assert.ok(!router.process.stderr.includes(key), 'no key reaches the log');
  }
});

for (const engine of ENGINES) {
  scenario(`${engine}: abort leaves nothing behind`, async (s) => {
    const sim = { decodeMs: 10, minOutput: 2000, maxOutput: 2000 };
    const config = { threads: 1, timeouts: { handoff_grace: '1s' } };
    const fleet = await Fleet.start(s, { engine, sim, config });
    const client = fleet.router.client();
    await s.step('mid-stream', async () => {
      const stream = await client.chat.completions.create(hello({ stream: true }));
      let tokens = 0;
      for await (const chunk of stream) {
        if (chunk.choices[0]?.delta?.content && ++tokens === 3) stream.controller.abort();
      }
      assert.ok(tokens >= 3 && tokens < 2000, `${tokens} tokens: what had come already, and no more`);
      await fleet.settle();
    });
    await s.step('before the first token', async () => {
      const [prefill] = fleet.of('prefill');
      for (const worker of fleet.sims) await worker.fault({ kind: 'hang' });
      const before = (await prefill.state()).requests;
      const controller = new AbortController();
      const asked = client.chat.completions.create(hello({ stream: true }), { signal: controller.signal });
      const ended = asked.catch((error) => error);
      await until('the prefill worker has the request', async () => (await prefill.state()).requests > before);
      controller.abort();
      assert.ok((await ended) instanceof OpenAI.APIUserAbortError);
      await fleet.settle();
    });
  });

  scenario(`${engine}: an answer that ends with its first token comes from the prefill worker`, async (s) => {
    const fleet = await Fleet.start(s, { engine });
    const client = fleet.router.client();
    for (const stream of [false, true]) {
      await s.step(stream ? 'streamed' : 'whole', async () => {
        const plain = hello({ messages: [{ role: 'user', content: `Stop at once ${stream}` }] });
        const body = { ...plain, stop: [firstWord(plain)], stream };
        const answer = await client.chat.completions.create(body);
        let text = '';
        let finish;
        if (stream) {
          for await (const chunk of answer) {
            text += chunk.choices[0]?.delta?.content ?? '';
            finish = chunk.choices[0]?.finish_reason ?? finish;
          }
        } else {
          text = answer.choices[0].message.content ?? '';
          finish = answer.choices[0].finish_reason;
          assert.ok(!('kv_transfer_params' in answer), 'the hand-over is not for clients');
          assert.ok(!answer.choices[0].disaggregated_params, 'the hand-over is not for clients');
        }
        assert.equal(text, '');
        assert.equal(finish, 'stop');
        await fleet.settle();
      });
    }
  });
}
