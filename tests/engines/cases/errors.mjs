// SPDX-License-Identifier: Apache-2.0
// A request that an engine refuses is refused by Baton with the same status and the same body.
import assert from 'node:assert/strict';

import { ask, CHAT, chat, completion, COMPLETIONS, lasting, OLD_VLLM } from '../support/suite.mjs';

/** A refusal as it is compared. vLLM 0.12 quotes the request in it, and a prefill server's is not the client's to the letter. */
const refusal = (body) => (OLD_VLLM ? JSON.parse(JSON.stringify(lasting(body)).replace(/'input': \{.*?\}, 'ctx'/g, '…')) : lasting(body));

const refused = (name, body, more = {}) => ({
  name: `refused: ${name}`,
  run: async (suite) => {
    const [direct, answer] = [await ask(suite.direct, body, more), await ask(suite.baton, body, more)];
    assert.ok(direct.status >= 400 && direct.status < 500, `the engine refuses: ${direct.status} ${direct.text}`);
    assert.equal(answer.status, direct.status, answer.text);
    assert.deepEqual(refusal(answer.body), refusal(direct.body));
  },
  ...more,
});
const VLLM = { engines: ['vllm'] };

export default [
  refused('negative temperature', chat('Hi', { temperature: -3 })),
  refused('top_p above 1', chat('Hi', { top_p: 3 })),
  refused('temperature is a word', chat('Hi', { temperature: 'hot' })),
  refused('max_tokens negative', completion('Hi', { max_tokens: -1 })),
  refused('max_tokens beyond the context', chat('Hi', { max_tokens: 99_999 }), VLLM),
  // vLLM 0.12 takes max_tokens off the length that it names, and the prefill server's is 1.
  refused('a prompt longer than the context', completion(Array(5_000).fill(9707), OLD_VLLM ? { max_tokens: 1 } : {})),
  refused('top_logprobs 100', chat('Hi', { logprobs: true, top_logprobs: 100 }), VLLM),
  refused('an empty prompt', completion('')),
  refused('greedy with two choices', chat('Hi', { n: 2, temperature: 0 }), VLLM),
  refused('a tool choice without tools', chat('Hi', { tool_choice: 'required' }), VLLM),
  refused('suffix', completion('Hi', { suffix: 'there' }), VLLM),
  refused('an image for a model without eyes', {
    ...chat(''), messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }] }],
  }, VLLM),
  refused('a bad schema', chat('Hi', { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'nothing' } } } }), VLLM),
  refused('streamed, negative temperature', chat('Hi', { temperature: -3, stream: true })),
  {
    name: 'refused: token ids beyond the vocabulary',
    run: async (suite) => {
      const answer = await ask(suite.baton, completion([9707, 999_999_999]));
      assert.equal(answer.status, 400, answer.text);
      const after = await ask(suite.baton, chat('Still there?', { max_tokens: 4 }));
      assert.equal(after.status, 200, after.text);
    },
  },
  {
    name: 'refused: no messages',
    run: async (suite) => {
      const answer = await ask(suite.baton, { ...chat(''), messages: [] });
      assert.equal(answer.status, 400, answer.text);
    },
  },
  {
    name: 'refused: not JSON',
    run: async (suite) => {
      for (const path of [CHAT, COMPLETIONS]) {
        const answer = await ask(suite.baton, '{"model": "tiny", ', { path });
        assert.equal(answer.status, 400, answer.text);
      }
    },
  },
];
