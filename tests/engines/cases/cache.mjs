// SPDX-License-Identifier: Apache-2.0
// Tokens and caches: Baton's are the engine's own.
import assert from 'node:assert/strict';

import { until } from '../../process/support/process.mjs';
import { ask, chat, completion } from '../support/suite.mjs';

const CHATS = [
  chat('Hello'),
  chat('Grüße, 世界! 🙂'),
  { ...chat(''), messages: [{ role: 'system', content: 'S' }, { role: 'user', content: 'U' }, { role: 'assistant', content: 'A' }, { role: 'user', content: '  spaces \n\n and lines\t' }] },
  { ...chat(''), messages: [{ role: 'developer', content: 'D' }, { role: 'user', content: [{ type: 'text', text: 'part one' }, { type: 'text', text: 'part two' }] }] },
];

async function tokens(server, body) {
  const answer = await ask(server, body, { path: '/tokenize' });
  assert.equal(answer.status, 200, answer.text);
  return answer.body.tokens;
}

/** Asks, and returns {predicted, cached} as the log line of the request has them. */
async function cachedTokens({ baton }, body) {
  const answer = await ask(baton, body);
  assert.equal(answer.status, 200, answer.text);
  const line = await baton.requestLine(answer.headers['x-request-id']);
  return { predicted: line.predicted_cached_tokens ?? 0, cached: line.cached_tokens ?? 0 };
}

export default [
  {
    name: 'tokens are the engine\'s',
    run: async (suite) => {
      // Parts of a message are joined by vLLM's rule, whatever the engine: such chats go to SGLang as text.
      for (const { model, messages } of CHATS.slice(0, suite.direct.engine === 'sglang' ? -1 : undefined)) {
        assert.deepEqual(await tokens(suite.baton, { model, messages }), await tokens(suite.direct, { model, messages }));
      }
      for (const prompt of ['plain text', ' leading', 'Zeile\r\nZeile', '<|im_start|>x']) {
        const { model } = completion(prompt);
        assert.deepEqual(await tokens(suite.baton, { model, prompt }), await tokens(suite.direct, { model, prompt }));
      }
    },
  },
  {
    name: 'predicted = cached, through evictions',
    engines: ['vllm'],
    run: async (suite) => {
      // Together they are more than the cache holds, so the first ones have gone when the last one has come.
      const documents = Array.from({ length: 14 }, (_, d) => Array.from({ length: 40 }, (_, i) => `Document ${d}, line ${i}.`).join(' '));
      const asked = async (d) => {
        await until('the events have been read', async () => (await suite.baton.metric('baton_kv_feed_lag_seconds').catch(() => 0)) < 1);
        const { predicted, cached } = await cachedTokens(suite, chat(documents[d], { max_tokens: 1 }));
        assert.equal(predicted, cached, `document ${d}`);
        return cached;
      };
      for (const d of documents.keys()) await asked(d);
      const hits = [];
      for (const d of [13, 12, 0, 1, 13, 0]) hits.push((await asked(d)) > 100);
      assert.deepEqual(hits, [true, true, false, false, true, true], 'the oldest were evicted, the newest not');
    },
  },
];
