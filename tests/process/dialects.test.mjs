// SPDX-License-Identifier: Apache-2.0
// Every engine, streamed and not, handed over and aggregated, through npm's official client: exactly the known text,
// and on each leg exactly the fields that engine wants.
import assert from 'node:assert/strict';

import { ENGINES, Fleet, SHAPES } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const TOOLS = [
  {
    type: 'function',
    function: { name: 'look_up', description: 'Finds.', parameters: { type: 'object', properties: { text: { type: 'string' } } } },
  },
];
const FOREIGN_TO_TRTLLM = ['kv_transfer_params', 'bootstrap_host', 'bootstrap_port', 'bootstrap_room', 'rid', 'request_id'];

const chat = (text, more = {}) => ({ model: 'demo', messages: [{ role: 'user', content: text }], ...more });
const completion = (text, more = {}) => ({ model: 'demo', prompt: text, max_tokens: 24, ...more });

/** Sends a request the way its shape asks for and folds a stream to the shape of a plain answer. */
async function ask(client, body) {
  const api = body.messages ? client.chat.completions : client.completions;
  const answer = await api.create(body);
  if (!body.stream) return answer;
  const folded = { choices: [], ids: new Set() };
  for await (const chunk of answer) {
    folded.ids.add(chunk.id);
    folded.usage = chunk.usage ?? folded.usage;
    for (const choice of chunk.choices) fold(folded, choice);
  }
  folded.id = [...folded.ids][0];
  return folded;
}

function fold(answer, { index, delta, text, finish_reason }) {
  const choice = (answer.choices[index] ??= { text: '', message: { content: '', tool_calls: [] } });
  choice.text += text ?? '';
  choice.message.content += delta?.content ?? '';
  for (const part of delta?.tool_calls ?? []) {
    const call = (choice.message.tool_calls[part.index] ??= { function: { name: '', arguments: '' }, deltas: 0 });
    call.id ??= part.id;
    call.function.name += part.function?.name ?? '';
    call.function.arguments += part.function?.arguments ?? '';
    ++call.deltas;
  }
  choice.finish_reason = finish_reason ?? choice.finish_reason;
}

function checkAnswer(answer, body) {
  const expected = expectedAnswer(body);
  assert.equal(answer.choices.length, expected.choices.length);
  answer.choices.forEach((choice, i) => {
    assert.equal(body.messages ? choice.message.content : choice.text, expected.choices[i].text);
    assert.equal(choice.finish_reason, expected.choices[i].finish);
  });
  assert.ok(answer.id, 'the answer has an id');
  if (body.stream) assert.equal(answer.ids.size, 1, 'all chunks carry the same id');
  assert.equal(answer.usage.prompt_tokens, expected.promptTokens);
  assert.equal(answer.usage.completion_tokens, expected.completionTokens);
  assert.equal(answer.usage.total_tokens, expected.promptTokens + expected.completionTokens);
}

function checkToolCall(answer, body) {
  const [{ toolCall, finish }] = expectedAnswer(body).choices;
  const [choice] = answer.choices;
  const [call] = choice.message.tool_calls;
  assert.equal(choice.finish_reason, finish);
  assert.equal(call.function.name, toolCall.name);
  assert.equal(call.function.arguments, toolCall.arguments);
  assert.ok(call.id.endsWith(toolCall.id), call.id);
  if (body.stream) assert.ok(call.deltas > 2, 'the arguments come in pieces');
}

const field = (text, name) => new RegExp(`"${name}"\\s*:\\s*("[^"]*"|-?\\d+)`).exec(text)?.[1];

const checkLegs = {
  vllm(prefill, decode, body) {
    const p = JSON.parse(prefill.body);
    assert.equal(prefill.phase, 'prefill');
    assert.equal(p.stream, false);
    assert.ok(!('stream_options' in p) && !('min_tokens' in p));
    assert.equal(p.max_tokens, 1);
    assert.ok(!('max_completion_tokens' in p) || p.max_completion_tokens === 1);
    assert.deepEqual(p.kv_transfer_params, {
      do_remote_decode: true, do_remote_prefill: false,
      remote_engine_id: null, remote_block_ids: null, remote_host: null, remote_port: null,
    });
    const { kv_transfer_params: params, ...rest } = JSON.parse(decode.body);
    assert.equal(decode.phase, 'decode');
    assert.deepEqual(rest, body, 'the decode leg is the client body plus the parameters');
    assert.equal(params.do_remote_prefill, true);
    assert.ok(params.remote_request_id, 'the parameters of the prefill answer are carried over');
  },
  sglang(prefill, decode, body) {
    for (const name of ['bootstrap_host', 'bootstrap_port', 'bootstrap_room']) {
      assert.ok(field(prefill.body, name), `${name} is sent`);
      assert.equal(field(prefill.body, name), field(decode.body, name), `${name} is equal on both legs`);
    }
    const room = BigInt(field(prefill.body, 'bootstrap_room'));
    assert.ok(room > 0n && room < 1n << 63n, `room ${room} is a positive 63-bit number`);
    const { bootstrap_host, bootstrap_port, bootstrap_room, rid, ...rest } = JSON.parse(decode.body);
    assert.deepEqual(rest, body, 'the decode leg is the client body plus the meeting point and a name');
    assert.match(rid, /^[0-9a-f]{32}$/);
  },
  trtllm(prefill, decode, body) {
    const p = JSON.parse(prefill.body);
    const d = JSON.parse(decode.body);
    assert.equal(p.stream, false);
    assert.ok(!('stream_options' in p));
    assert.equal(p.disaggregated_params.request_type, 'context_only');
    const id = BigInt(field(prefill.body, 'disagg_request_id'));
    assert.ok(id >= 1n << 40n && id < 1n << 63n, `disagg_request_id ${id} is in range`);
    assert.equal(d.disaggregated_params.request_type, 'generation_only');
    assert.ok(d.disaggregated_params.ctx_usage.prompt_tokens > 0, 'ctx_usage is handed on');
    const tokens = body.messages ? d.prompt_token_ids : d.prompt;
    assert.ok(Array.isArray(tokens) && tokens.length === d.disaggregated_params.ctx_usage.prompt_tokens);
    for (const name of FOREIGN_TO_TRTLLM) assert.ok(!(name in p) && !(name in d), `no ${name} for trtllm`);
    assert.equal(d.stream, body.stream);
  },
};

async function checkFleet(fleet, handoffs) {
  for (const state of await fleet.settle()) {
    assert.equal(state.recomputed, 0);
    assert.equal(state.refused, 0);
  }
  for (const decode of fleet.of('decode')) assert.equal((await decode.state()).fetched, handoffs);
}

for (const engine of ENGINES) {
  for (const [shape, counts] of Object.entries(SHAPES)) {
    scenario(`${engine} ${shape}`, async (s) => {
      const sim = { toolCallParser: 'hermes', enableAutoToolChoice: true };
      const fleet = await Fleet.start(s, { engine, counts, sim });
      const client = fleet.router.client();
      // Choices are drawn by legs of their own: without a seed they are unpredictable.
      const variants = [{}, { max_tokens: 5 }, { temperature: 0.25, seed: 7 }, { n: 2, seed: 9 }];
      let handoffs = 0;
      for (const stream of [false, true]) {
        const how = stream ? { stream, stream_options: { include_usage: true } } : {};
        for (const [kind, make] of Object.entries({ chat, completion })) {
          await s.step(`${kind}, ${stream ? 'streamed' : 'whole'}`, async () => {
            for (const more of variants) {
              const body = make(`Tell me, please: ${kind} ${stream} in ${'many '.repeat(40)}words. Ünïcode ✓`, { ...more, ...how });
              handoffs += more.n ?? 1;
              checkAnswer(await ask(client, body), body);
            }
            await checkFleet(fleet, handoffs);
          });
          if (shape === 'aggregated') continue;
          await s.step(`legs of ${kind}, ${stream ? 'streamed' : 'whole'}`, async () => {
            const body = make(`What arrives for ${kind} ${stream}?`, how);
            ++handoffs;
            await ask(client, body);
            const [prefill] = (await fleet.of('prefill')[0].legs()).slice(-1);
            const [decode] = (await fleet.of('decode')[0].legs()).slice(-1);
            checkLegs[engine](prefill, decode, JSON.parse(JSON.stringify(body)));
          });
        }
        await s.step(`tool call, ${stream ? 'streamed' : 'whole'}`, async () => {
          const body = chat('Please look it up.', { tools: TOOLS, ...how });
          ++handoffs;
          checkToolCall(await ask(client, body), body);
        });
        await s.step(`conversation with parts and tool results, ${stream ? 'streamed' : 'whole'}`, async () => {
          const call = { id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '{"text":"a b"}' } };
          const messages = [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: [{ type: 'text', text: 'Look ' }, { type: 'text', text: 'it up.' }] },
            { role: 'assistant', content: null, tool_calls: [call] },
            { role: 'tool', tool_call_id: 'call_1', content: 'found' },
          ];
          const body = { model: 'demo', messages, tools: TOOLS, ...how };
          ++handoffs;
          checkAnswer(await ask(client, body), body);
        });
      }
      await s.step('nothing is left in the fleet', () => checkFleet(fleet, handoffs));
    });
  }
}

scenario('several choices at temperature 0 are refused as vLLM refuses them', async (s) => {
  const fleet = await Fleet.start(s, { counts: { prefill: 1, decode: 1 } });
  const send = (body) => request(fleet.router.address, { path: '/v1/chat/completions', body: JSON.stringify(body) });
  const messages = [{ role: 'user', content: 'Twice the same' }];
  for (const stream of [false, true]) {
    const refused = await send({ model: 'demo', messages, n: 2, temperature: 0, stream });
    assert.equal(refused.status, 400, refused.text);
    assert.match(refused.text, /n must be 1 when using greedy sampling, got 2\./);
    assert.equal((await send({ model: 'demo', messages, n: 2, temperature: 0.5, stream })).status, 200);
    assert.equal((await send({ model: 'demo', messages, n: 1, temperature: 0, stream })).status, 200);
  }
  await checkFleet(fleet, 6);
});
