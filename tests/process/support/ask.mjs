// SPDX-License-Identifier: Apache-2.0
// Requests as tests make them, and exact answers as they expect them.
import assert from 'node:assert/strict';

import { eventsOf, readAnswer, request } from './http.mjs';
import { inTime } from './process.mjs';
import { expectedAnswer } from './text.mjs';

const ANSWERED_WITHIN = 20_000;

export const CHAT = '/v1/chat/completions';
export const COMPLETIONS = '/v1/completions';

export const chat = (text, more = {}) => ({ model: 'demo', messages: [{ role: 'user', content: text }], ...more });
export const completion = (text, more = {}) => ({ model: 'demo', prompt: text, max_tokens: 24, ...more });
/** With usage at the end, as only a stream has to be asked for. */
export const streamed = { stream: true, stream_options: { include_usage: true } };

/** Both APIs, whole and streamed: [name, make(text, more)]. */
export const KINDS = Object.entries({ chat, completion }).flatMap(([kind, make]) => [
  [`${kind}, whole`, make],
  [`${kind}, streamed`, (text, more = {}) => make(text, { ...streamed, ...more })],
]);

/** Every choice of an answer by its index, {text, finish}; of a stream, what its events add up to. */
export function choicesOf(raw) {
  const choices = [];
  const events = raw.text.startsWith('data:') ? eventsOf(raw.text).filter((data) => data !== '[DONE]') : [raw.text];
  for (const { choices: some = [] } of events.map((event) => JSON.parse(event))) {
    for (const { index, delta, message, text, finish_reason: finish } of some) {
      const choice = (choices[index] ??= { text: '', finish: undefined });
      choice.text += text ?? delta?.content ?? message?.content ?? '';
      choice.finish = finish ?? choice.finish;
    }
  }
  return choices;
}

/** One request on a connection of its own, and what its answer amounts to; see readAnswer. */
export async function ask({ address }, body, headers = {}) {
  const path = body.messages ? CHAT : COMPLETIONS;
  const raw = await inTime('an answer', request(address, { path, body: JSON.stringify(body), headers }), ANSWERED_WITHIN);
  return { ...readAnswer(raw), headers: raw.headers, raw: raw.text };
}

/** The one right answer, whole. */
export function checkExact(answer, body, limits = {}) {
  const expected = expectedAnswer(body, limits);
  assert.equal(answer.status, 200, answer.raw);
  assert.equal(answer.error, undefined, answer.raw);
  assert.ok(answer.done && answer.complete, `a whole answer: ${answer.raw}`);
  const wanted = expected.choices.map(({ text, finish }) => ({ text, finish }));
  assert.deepEqual(choicesOf({ text: answer.raw }), wanted);
  if (body.stream && !body.stream_options?.include_usage) return;
  assert.equal(answer.usage.prompt_tokens, expected.promptTokens, 'prompt tokens');
  assert.equal(answer.usage.completion_tokens, expected.completionTokens, 'completion tokens');
}

/** An error in the OpenAI shape with this status and code; returns its message. */
export function checkRefused(answer, status, code) {
  assert.ok(answer.error, `an error is told: ${answer.raw}`);
  assert.equal(answer.error.code, code, answer.raw);
  assert.equal(answer.status, status, answer.raw);
  if ([429, 503].includes(status)) assert.match(answer.headers['retry-after'] ?? '', /^\d+$/);
  return answer.error.message;
}

/** A simulator's own refusal, as it wrote it: a plain answer with its status, streamed or not. */
export function checkPassedOn({ status, raw, headers }, wanted) {
  assert.equal(status, wanted, raw);
  assert.equal(headers['content-type'], 'application/json');
  const body = JSON.parse(raw);
  const { message, code } = body.error ?? body;
  assert.match(message, /^simulated fault: status/);
  assert.notEqual(code, 'engine_rejected', 'not in the shape of the router');
}

/** Which workers the answer's headers name. */
export const servedBy = ({ headers }) => ({
  prefill: headers['x-baton-prefill-worker'],
  decode: headers['x-baton-decode-worker'],
});
