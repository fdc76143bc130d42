// SPDX-License-Identifier: Apache-2.0
// What Baton learns of its servers, and streams that go on elsewhere.
import assert from 'node:assert/strict';

import { Call } from '../../process/support/call.mjs';
import { fetchText } from '../../process/support/http.mjs';
import { inTime, until } from '../../process/support/process.mjs';
import { blockOf, MODEL } from '../support/servers.mjs';
import { ask, chat, completion, readStream, streamed } from '../support/suite.mjs';

const OTHER = { vllm: 'sglang', sglang: 'vllm' };
const urlOf = ({ address }) => `http://${address}`;

/** Asks until a certain server streams the answer: they take turns. */
async function streamFrom(router, body, server) {
  for (let attempt = 0; attempt < 10; ++attempt) {
    const call = new Call(router.address, body);
    await until('an answer', () => call.status !== undefined || call.over);
    if (call.headers?.['x-baton-decode-worker'] === server.address) return call;
    call.leave();
    await call.ended;
  }
  throw new Error(`${server.address} never served`);
}

export default [
  {
    name: 'a server of another engine than configured is not used, and the reason says so',
    run: async (suite) => {
      const { engine } = suite.direct;
      const worker = { url: urlOf(suite.direct), engine: OTHER[engine], role: 'aggregated' };
      const router = await suite.routerOf([worker]);
      const found = await until('the worker has been judged', async () => {
        const one = await router.workerAt(suite.direct);
        return one?.state === 'misconfigured' && one;
      });
      assert.match(found.reason.toLowerCase(), new RegExp(engine));
      const answer = await ask(router, chat('Is anybody there?'));
      assert.equal(answer.status, 503, answer.text);
      await router.process.finish();
    },
  },
  {
    name: 'what a server tells of itself is known',
    engines: ['vllm'],
    run: async (suite) => {
      for (const server of suite.workers) {
        const { number } = await suite.baton.workerAt(server);
        const { engine_facts: said } = JSON.parse(await fetchText(suite.baton.admin, `/workers/${number}`));
        assert.deepEqual({ engine: said.engine, block: said.block_size }, { engine: server.engine, block: blockOf(server) });
      }
    },
  },
  {
    name: 'a server that no longer computes is found by canaries, and used again when it does',
    run: async (suite) => {
      const canary = { idle: '500ms', timeout: '3s', failures: 2 };
      const router = await suite.router([suite.prefill, suite.decode], { canary });
      await suite.decode.freeze();
      await until('it is out', async () => !['ready', 'half_open'].includes((await router.workerAt(suite.decode)).state), 60_000);
      await suite.decode.thaw();
      await until('it is back', async () => (await router.workerAt(suite.decode)).state === 'ready', 60_000);
      const answer = await ask(router, chat('Awake?', { max_tokens: 4 }));
      assert.equal(answer.status, 200, answer.text);
      await router.process.finish();
      await suite.idle();
    },
  },
  {
    name: 'a stream whose decode server dies goes on at another one',
    push: true,
    run: async (suite) => {
      const body = completion('A stream that goes on:', { max_tokens: 80, ignore_eos: true, ...streamed });
      const direct = await ask(suite.direct, body);
      const second = await suite.server('decode');
      const router = await suite.router([suite.prefill, suite.decode, second], { trust_routing_headers: true });
      const call = await streamFrom(router, body, second);
      await until('the stream has begun', () => call.events > 5 || call.over);
      await second.kill();
      const { text } = await inTime('the end of the stream', call.ended, 240_000);
      const { choices, done, error } = readStream(text);
      assert.equal(error, undefined, text.slice(-500));
      assert.equal(done, 1);
      assert.equal(choices[0].text, direct.choices[0].text);
      assert.equal(choices[0].finish_reason, 'length');
      await until('the migration is counted', async () => (await router.metric('baton_migrations_total', { model: MODEL })) === 1);
      await router.process.finish();
      await suite.idle();
    },
  },
];
