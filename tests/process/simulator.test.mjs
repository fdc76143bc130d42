// SPDX-License-Identifier: Apache-2.0
// The simulator alone, against its documented answers and hand-offs; the router's tests rely on both.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

import { Sim } from './support/fleet.mjs';
import { eventsOf, fetchText, request } from './support/http.mjs';
import { Process } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer, renderChat, tokenize } from './support/text.mjs';

const messages = [{ role: 'user', content: 'Tell me of the sea, and of ships.' }];

async function ask(sim, path, body, headers = {}) {
  const whole = { model: 'demo', ...body };
  const answer = await request(sim.address, { path, headers, body: JSON.stringify(whole) });
  assert.equal(answer.status, 200, answer.text);
  if (!body.stream) return JSON.parse(answer.text);
  return eventsOf(answer.text).filter((one) => one !== '[DONE]').map((one) => JSON.parse(one));
}
const chat = (sim, body, headers) => ask(sim, '/v1/chat/completions', { messages, ...body }, headers);
const complete = (sim, body) => ask(sim, '/v1/completions', body);
const textOf = (answer) => answer.choices[0].message.content;

scenario('an answer goes on exactly from any of its tokens', async (s) => {
  const vllm = await Sim.start(s);
  const sglang = await Sim.start(s, { engine: 'sglang' });
  const prompt = tokenize('once upon a time');
  const whole = expectedAnswer({ prompt, max_tokens: 1000 }).choices[0];
  for (const sim of [vllm, sglang]) {
    for (let k = 0; k <= whole.tokens; ++k) {
      const asked = [...prompt, ...whole.ids.slice(0, k)];
      const body = { prompt: asked, max_tokens: 1000, return_token_ids: true, stream: k % 2 === 0 };
      const answer = await complete(sim, body);
      const chunks = (body.stream ? answer : [answer]).flatMap((one) => one.choices);
      assert.deepEqual(chunks.flatMap((one) => one.token_ids ?? []), whole.ids.slice(k), `${sim.engine}, ${k} tokens on`);
      const text = chunks.map((one) => one.text).join('');
      assert.ok(whole.text.endsWith(text) && text === expectedAnswer(body).choices[0].text);
      assert.equal(chunks.at(-1).finish_reason, 'stop');
      assert.deepEqual(chunks[0].prompt_token_ids, body.prompt);
      assert.ok(chunks.slice(1).every((one) => (one.prompt_token_ids ?? null) === null));
    }
  }
});

scenario('chats take token ids in place of their messages', async (s) => {
  const whole = expectedAnswer({ messages }).choices[0];
  const ids = [...renderChat({ messages }), ...whole.ids.slice(0, 4)];
  const fields = {
    vllm: { kv_transfer_params: { prompt_token_ids: ids } },
    sglang: { input_ids: ids },
    trtllm: { prompt_token_ids: ids },
  };
  for (const [engine, field] of Object.entries(fields)) {
    const sim = await Sim.start(s, { engine });
    const first = whole.text.split(' ').slice(0, 4).join(' ');
    assert.equal(first + textOf(await chat(sim, field)), whole.text, engine);
    const streamed = await chat(sim, { ...field, stream: true });
    assert.equal(streamed[0].choices[0].delta.role, 'assistant');
    assert.equal(first + streamed.map((one) => one.choices[0]?.delta.content ?? '').join(''), whole.text, engine);
  }
});

scenario('seeds vary the answer, and each choice has its own', async (s) => {
  const sim = await Sim.start(s);
  for (const body of [{ n: 3 }, { n: 3, seed: 5 }, { seed: 7 }, { seed: -1 }]) {
    const answer = await chat(sim, body);
    const expected = expectedAnswer({ messages, ...body });
    assert.deepEqual(answer.choices.map((one) => one.message.content), expected.choices.map((one) => one.text));
  }
  assert.equal(textOf(await chat(sim, { seed: 7 })), expectedAnswer({ messages, n: 3, seed: 5 }).choices[2].text);
});

const DISAGG_ID = 2 ** 41 + 7;

// Per mode: what a prefill worker is started with, and the fields of both legs.
const TOGETHER = {
  nixl_push: {
    engine: 'vllm',
    prefill: () => ({ kv_transfer_params: { do_remote_decode: true, do_remote_prefill: false }, max_tokens: 1 }),
    decode: async (sim) => ({
      kv_transfer_params: {
        do_remote_decode: false, do_remote_prefill: true, remote_engine_id: 'p0', remote_request_id: 'id-1',
        remote_host: '127.0.0.1', remote_port: Number(sim.address.split(':')[1]), tp_size: 1, pp_size: 1,
      },
    }),
  },
  mooncake: {
    engine: 'vllm',
    prefill: () => ({ kv_transfer_params: { do_remote_decode: true, do_remote_prefill: false, transfer_id: 'x' }, max_tokens: 1 }),
    decode: async (sim, bootstrap) => ({
      kv_transfer_params: {
        do_remote_decode: false, do_remote_prefill: true, transfer_id: 'x', remote_bootstrap_addr: `http://${bootstrap}`,
        remote_engine_id: JSON.parse(await fetchText(bootstrap, '/query'))[0].engine_id,
      },
    }),
  },
  generation_first: {
    engine: 'trtllm',
    prefill: () => ({ disaggregated_params: { request_type: 'context_only', schedule_style: 1, disagg_request_id: DISAGG_ID } }),
    decode: async (sim) => {
      const info = JSON.parse(await fetchText(sim.address, '/server_info')).disaggregated_params;
      const ids = { disagg_request_id: DISAGG_ID, ctx_request_id: DISAGG_ID };
      return {
        disaggregated_params: {
          ...info, ctx_info_endpoint: info.ctx_info_endpoint[0], request_type: 'generation_only', schedule_style: 1, ...ids,
        },
      };
    },
  },
};

for (const [handoff, { engine, prefill, decode }] of Object.entries(TOGETHER)) {
  scenario(`${handoff}: the legs run together and meet`, async (s) => {
    const bootstrapReadyFile = s.file('bootstrap');
    const flags = handoff === 'mooncake' ? { bootstrapReadyFile } : {};
    const from = await Sim.start(s, { engine, role: 'prefill', handoff, engineId: 'p0', ...flags });
    const to = await Sim.start(s, { engine, role: 'decode', handoff });
    const bootstrap = handoff === 'mooncake' ? (await readFile(bootstrapReadyFile, 'utf8')).trim() : '';
    const headers = { 'X-Request-Id': 'id-1' };
    const [first, answer] = await Promise.all([
      chat(from, prefill(), headers),
      decode(from, bootstrap).then((fields) => chat(to, fields, headers)),
    ]);
    const expected = expectedAnswer({ messages });
    assert.equal(textOf(first), expectedAnswer({ messages, max_tokens: 1 }).choices[0].text);
    assert.equal(textOf(answer), expected.choices[0].text);
    assert.equal(answer.usage.completion_tokens, expected.completionTokens);
    const { pinned, leaked } = await from.state();
    assert.deepEqual({ pinned, leaked, fetched: (await to.state()).fetched }, { pinned: 0, leaked: 0, fetched: 1 });
  });
}

scenario('a hand-off of another engine is refused at the start', async (s) => {
  const sim = s.adopt(new Process('sim-wrong', ['sim', '--engine', 'sglang', '--handoff', 'nixl_push', '--port', '0']));
  sim.expectedExit = 2;
  await sim.ended();
  assert.match(sim.stderr, /nixl_push.*sglang/);
});
