// SPDX-License-Identifier: Apache-2.0
// Requests of every kind, and whether what became of each is right: an exact answer, or a clear error.
import assert from 'node:assert/strict';

import { Call, readStream } from './call.mjs';
import { Dice, pause } from './dice.mjs';
import { inTime } from './process.mjs';
import { expectedAnswer } from './text.mjs';

/** Of answers; the simulators must have the same. */
export const LIMITS = { minOutput: 8, maxOutput: 48 };

export const CLIENTS = 24;
const ANSWERED_WITHIN = 30_000;
const MOST_TOLD = 50;
const TOLD = [
  'engine_failed', 'engine_overloaded', 'engine_protocol', 'engine_timeout', 'engine_unreachable', 'no_eligible_worker', 'poison_request',
  'no_workers', 'stream_broken',
];

const TOOL = { type: 'function', function: { name: 'look_up', parameters: { type: 'object', properties: { text: { type: 'string' } } } } };

/** `tools` is the share of chats that have one to call. */
export function someRequest(dice, engine, number, { model = 'demo', tools = 0 } = {}) {
  const words = dice.chance(0.1) ? dice.between(400, 2000) : dice.between(1, 80);
  const text = `Request ${number}: ${'word and '.repeat(words)}so on`;
  const stream = dice.chance(0.6);
  const more = { ...(stream && dice.chance(0.5) ? { stream_options: { include_usage: true } } : {}) };
  if (dice.chance(0.5)) {
    const messages = [{ role: 'user', content: text }];
    if (dice.chance(tools)) return { model, messages, stream, tools: [TOOL] };
    return { model, messages, stream, ...more, ...someOptions(dice, engine, stream, number) };
  }
  return { model, prompt: text, stream, ...more, ...someOptions(dice, engine, stream, number) };
}

function someOptions(dice, engine, stream, number) {
  return {
    ...(dice.chance(0.3) ? { max_tokens: dice.between(1, 40) } : {}),
    ...(dice.chance(0.1) ? { n: 2, seed: number } : {}),
    ...(engine === 'vllm' && stream && dice.chance(0.1) ? { return_token_ids: true } : {}),
  };
}

/** What became of the requests. */
export class Tally {
  requests = 0;
  exact = 0;
  aborts = 0;
  errors = {};
  violations = [];

  fail(call, why) {
    const { status, text } = call;
    if (this.violations.length === MOST_TOLD) return;
    this.violations.push(`${why}\n  request ${JSON.stringify(call.body).slice(0, 200)}\n  status ${status}, answer …${text.slice(-400)}`);
  }

  take(call, answer) {
    ++this.requests;
    try {
      this.#judge(call, answer);
    } catch (error) {
      this.fail(call, error.message);
    }
  }

  #judge(call, answer) {
    const { body } = call;
    const expected = expectedAnswer(body, LIMITS);
    if (call.left) {
      ++this.aborts;
      if (answer.status === 200 && body.stream) checkBeginning(readStream(cutAtEvent(answer.text)), expected);
      return;
    }
    assert.equal(answer.failed, undefined, 'no connection is cut without a word');
    assert.ok(answer.complete, 'every answer has an end');
    if (answer.status !== 200) return this.#told(JSON.parse(answer.text).error);
    if (!body.stream) {
      checkWhole(JSON.parse(answer.text), body, expected);
    } else {
      const stream = readStream(answer.text);
      if (stream.errors.length > 0) {
        assert.equal(stream.done, 0, 'no [DONE] after an error');
        assert.equal(stream.errors.length, 1, 'one error');
        checkBeginning(stream, expected);
        return this.#told(stream.errors[0]);
      }
      checkStream(stream, body, expected);
    }
    ++this.exact;
  }

  #told(error) {
    assert.ok(error?.message && TOLD.includes(error.code), `a clear error: ${JSON.stringify(error)}`);
    this.errors[error.code] = (this.errors[error.code] ?? 0) + 1;
  }
}

const cutAtEvent = (text) => text.slice(0, text.lastIndexOf('\n\n') + 2);

function checkBeginning(stream, expected) {
  stream.choices.forEach((choice, i) => {
    assert.ok((expected.choices[i].text ?? '').startsWith(choice.text), `a wrong beginning: ${choice.text}`);
  });
}

function checkUsage(usage, { promptTokens, completionTokens }) {
  const total = promptTokens + completionTokens;
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [promptTokens, completionTokens, total], 'usage');
}

function checkCall(call, { toolCall }) {
  assert.equal(call.name, toolCall.name);
  assert.equal(call.arguments, toolCall.arguments);
}

function checkWhole(answer, body, expected) {
  assert.equal(answer.choices.length, expected.choices.length);
  for (const { index, text, message, finish_reason: finish } of answer.choices) {
    assert.equal(finish, expected.choices[index].finish);
    if (body.tools) return checkCall(message.tool_calls[0].function, expected.choices[index]);
    assert.equal(text ?? message.content, expected.choices[index].text);
  }
  checkUsage(answer.usage, expected);
}

function checkStream(stream, body, expected) {
  assert.equal(stream.done, 1, 'one [DONE]');
  assert.equal(stream.ids.size, 1, 'one id');
  assert.equal(stream.choices.length, expected.choices.length);
  stream.choices.forEach((choice, i) => {
    assert.deepEqual(choice.finishes, [expected.choices[i].finish]);
    if (body.tools) return checkCall(choice.call, expected.choices[i]);
    assert.equal(choice.text, expected.choices[i].text);
    if (body.messages) assert.equal(choice.roles, 1, 'it is said once who speaks');
    if (body.return_token_ids && !body.n) assert.deepEqual(choice.tokenIds, expected.choices[i].ids);
  });
  if (body.stream_options) checkUsage(stream.usages.at(-1), expected);
}

/** Sends one request, waits for its end or leaves at some moment, and has it judged. Whether it came to an end at all. */
export async function callOnce(router, body, dice, tally, { leaves = 0.15 } = {}) {
  const call = new Call(router.address, body);
  if (dice.chance(leaves)) {
    await Promise.race([call.ended, pause(dice.between(0, 120))]);
    if (!call.over) call.leave();
  }
  const answer = await inTime('an answer', call.ended, ANSWERED_WITHIN).catch((error) => tally.fail(call, error.message));
  if (answer) tally.take(call, answer);
  return Boolean(answer);
}

/** Clients that send one request after the other for as long as `goesOn()`; some leave. */
export function load(router, engine, dice, tally, goesOn, options = {}) {
  const client = async (own) => {
    while (goesOn() && (await callOnce(router, someRequest(own, engine, own.below(1e9)), own, tally, options)));
  };
  return Promise.all(Array.from({ length: CLIENTS }, () => client(new Dice(dice.below(2 ** 32)))));
}

/** So long from now. */
export function during(milliseconds) {
  const until = Date.now() + milliseconds;
  return () => Date.now() < until;
}
