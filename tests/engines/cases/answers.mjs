// SPDX-License-Identifier: Apache-2.0
// Answers through prefill and decode are the answers of one server.
import assert from 'node:assert/strict';

import { ask, chat, completion, same, streamed } from '../support/suite.mjs';

const LONG = Array.from({ length: 180 }, (_, i) => `Line ${i} of a long document.`).join('\n');
const WEATHER = {
  type: 'function',
  function: { name: 'weather', description: 'Weather of a city', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
};
const SCHEMA = { type: 'object', properties: { colour: { enum: ['red', 'green', 'blue'] } }, required: ['colour'], additionalProperties: false };

const whole = (name, body, { engines, push, ...options } = {}) => ({ name, engines, push, run: (suite) => same(suite, body, options) });
const both = (name, body, more = {}) => [whole(name, body, more), whole(`${name}, streamed`, { ...body, ...streamed }, more)];

export default [
  ...both('chat', chat('Hello, who are you?'), { push: true }),
  ...both('completion', completion('The capital of France is'), { push: true }),
  ...both('chat of several turns', {
    ...chat(''),
    messages: [
      { role: 'system', content: 'You are terse.' },
      { role: 'user', content: 'What is two and two?' },
      { role: 'assistant', content: 'Four.' },
      { role: 'user', content: [{ type: 'text', text: 'And three' }, { type: 'text', text: 'and three?' }] },
    ],
  }),
  whole('chat with a developer message', { ...chat(''), messages: [{ role: 'developer', content: 'Answer in rhyme.' }, { role: 'user', content: 'Why?' }] }),
  whole('chat in several scripts', chat('Grüße, 世界! 🙂 \u0000? مرحبا <|im_end|> </s>')),
  whole('token ids as prompt', completion([9707, 11, 1879, 374, 264, 4285, 1296])),
  whole('a list of prompts', completion(['One is', 'Two is', 'Three is'])),
  whole('a list of lists of token ids', completion([[9707, 11], [1879, 374, 264]])),
  ...both('a long prompt', chat(LONG), { push: true }),
  ...both('one token', chat('Just one word, please.', { max_tokens: 1 }), { push: true }),
  ...both('completion logprobs', completion('Once upon a time', { logprobs: 2 })),
  ...both('chat logprobs', chat('A list of fruits:', { logprobs: true, top_logprobs: 3 })),
  whole('echo', completion('Repeat after me', { echo: true })),
  whole('echo with logprobs', completion('Repeat this as well', { echo: true, logprobs: 1 })),
  // Within one server the second choice finds the prompt cached, so usage differs.
  whole('two choices with a seed', chat('Tell me a story.', { n: 2, temperature: 1, seed: 11 }), { engines: ['vllm'], usage: false }),
  {
    name: 'two choices',
    run: async (suite) => {
      const body = chat('Tell me two stories.', { n: 2, temperature: 0.8 });
      const [direct, answer] = [await ask(suite.direct, body), await ask(suite.baton, body)];
      const shape = ({ status, choices, usage }) => ({
        status, prompt: usage?.prompt_tokens, indexes: choices.map(({ index }) => index).sort(), reasons: choices.every(({ finish_reason: f }) => f),
      });
      assert.deepEqual(shape(answer), shape(direct));
    },
  },
  whole('ids of tokens', chat('Say which tokens.', { return_token_ids: true }), { engines: ['vllm'] }),
  ...both('tools, a named one', chat('Weather in Paris?', { tools: [WEATHER], tool_choice: { type: 'function', function: { name: 'weather' } }, max_tokens: 40 })),
  whole('tools, auto', chat('Weather in Rome?', { tools: [WEATHER], tool_choice: 'auto' })),
  whole('JSON schema', chat('Pick a colour.', { response_format: { type: 'json_schema', json_schema: { name: 'colour', schema: SCHEMA } } })),
  {
    name: 'stop string',
    run: async (suite) => {
      const plain = await same(suite, completion('Count to ten: one'));
      const stop = plain.choices[0].text.slice(8, 14);
      await same(suite, completion('Count to ten: one', { stop: [stop] }));
      await same(suite, completion('Count to ten: one', { stop: [stop], ...streamed }));
    },
  },
  {
    // The prefill worker has pinned blocks by then, and no decode worker ever fetches them.
    name: 'an answer that ends in the prefill',
    push: true,
    run: async (suite) => {
      const prompt = 'The first word decides: this prompt is longer than one block of any engine that is tried here, so that there is something to hold.';
      const first = await same(suite, chat(prompt, { max_tokens: 1 }));
      const stop = [first.choices[0].message.content];
      await same(suite, chat(prompt, { stop }));
      await same(suite, chat(prompt, { stop, ...streamed }));
      await suite.idle();
    },
  },
  {
    name: 'a repeated prompt is cached',
    run: async (suite) => {
      const body = chat(`Remember this. ${LONG.slice(0, 3_000)}`, { max_tokens: 4 });
      await same(suite, body);
      const again = await same(suite, body);
      assert.ok(again.usage.prompt_tokens_details.cached_tokens > 0, JSON.stringify(again.usage));
    },
  },
];
