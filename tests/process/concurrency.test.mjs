// SPDX-License-Identifier: Apache-2.0
// A thousand streams at once through two prefill and two decode workers: every one exact, nothing left over.
import assert from 'node:assert/strict';
import http from 'node:http';

import { Fleet } from './support/fleet.mjs';
import { readAnswer, request } from './support/http.mjs';
import { inTime } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const STREAMS = 1_000;
const WITHIN = 240_000;

scenario('a thousand concurrent streams', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 2, decode: 2 },
    sim: { decodeMs: 5, maxSeqs: 1024, blocks: 65536, minOutput: 20, maxOutput: 40 },
  });
  const bodies = Array.from({ length: STREAMS }, (_, i) => ({
    model: 'demo',
    messages: [{ role: 'user', content: `Stream number ${i}: ${'some words '.repeat(i % 50)}` }],
    stream: true,
    stream_options: { include_usage: true },
  }));
  const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
  s.after(() => agent.destroy());
  const one = (body) => request(fleet.router.address, { path: '/v1/chat/completions', body: JSON.stringify(body), agent });
  const answers = await inTime('all streams', Promise.all(bodies.map(one)), WITHIN);
  answers.forEach((answer, i) => {
    const { choices: [expected], promptTokens } = expectedAnswer(bodies[i], { minOutput: 20, maxOutput: 40 });
    const { status, text, finish, done, usage } = readAnswer(answer);
    assert.equal(status, 200, answer.text);
    assert.equal(text, expected.text, `text of stream ${i}`);
    assert.equal(finish, expected.finish);
    assert.ok(done, `stream ${i} ends with [DONE]`);
    assert.equal(usage.prompt_tokens, promptTokens);
    assert.equal(usage.completion_tokens, expected.tokens);
  });
  const states = await fleet.settle();
  const sum = (role, key) => fleet.sims.reduce((total, sim, i) => total + (sim.role === role ? states[i][key] : 0), 0);
  assert.equal(sum('decode', 'fetched'), STREAMS, 'every hand-over was fetched');
  assert.equal(sum('decode', 'recomputed'), 0);
  fleet.sims.forEach((sim, i) => assert.equal(states[i].requests, STREAMS / 2, `${sim.process.name} had its half`));
});
