// SPDX-License-Identifier: Apache-2.0
// One aggregated server that is asked directly, a prefill and a decode server behind Baton, and how their answers are compared.
import assert from 'node:assert/strict';

import { Router } from '../../process/support/fleet.mjs';
import { eventsOf, request } from '../../process/support/http.mjs';
import { inTime } from '../../process/support/process.mjs';
import { MODEL, RealServer, SimServer, tokenizerOf } from './servers.mjs';

const ANSWERED_WITHIN = 120_000;
// Differ in every answer by design.
const VOLATILE = new Set(['id', 'created', 'system_fingerprint', 'request_id']);

export const CHAT = '/v1/chat/completions';
export const COMPLETIONS = '/v1/completions';
export const pathOf = (body) => (body.prompt === undefined ? CHAT : COMPLETIONS);

export const chat = (text, more = {}) => ({
  model: MODEL, messages: [{ role: 'user', content: text }], max_tokens: 24, temperature: 0, ...more,
});
export const completion = (prompt, more = {}) => ({ model: MODEL, prompt, max_tokens: 24, temperature: 0, ...more });
export const streamed = { stream: true, stream_options: { include_usage: true } };

/** Which engines are meant, from the environment: `vllm`, or an older release as `vllm-0.12`; real ones where their folder is named. */
const NAME = process.env.BATON_ENGINE ?? 'vllm';
export const [ENGINE, RELEASE = 'newest'] = NAME.split('-');
export const OLD_VLLM = NAME === 'vllm-0.12';
const FOLDER = process.env.BATON_ENGINES;
export const KIND = `${FOLDER ? 'real' : 'simulated'} ${NAME}`;

export class Suite {
  /** `handoff`: the mode of the prefill and the decode server, if not the engine's usual one. */
  static async start(scenario, { handoff } = {}) {
    const suite = new Suite();
    Object.assign(suite, { scenario, handoff });
    const roles = ['aggregated', 'prefill', 'decode'];
    [suite.direct, suite.prefill, suite.decode] = await Promise.all(roles.map((role) => suite.server(role)));
    suite.baton = await suite.router([suite.prefill, suite.decode]);
    return suite;
  }

  server(role) {
    const handoff = role === 'aggregated' ? undefined : this.handoff;
    const options = { engine: ENGINE, release: RELEASE, role, folder: FOLDER, handoff };
    return (FOLDER ? RealServer : SimServer).start(this.scenario, options);
  }

  /** A router in front of some servers that is ready, each having passed the self-test. */
  async router(servers, config = {}) {
    const router = await this.routerOf(servers.map((server) => server.worker()), config);
    await router.allUp(MODEL);
    return router;
  }

  /** A router with these workers, as its configuration names them; they may not be up yet. */
  routerOf(workers, config = {}) {
    return Router.start(this.scenario, {
      probe: { self_test: true },
      health: { interval: '1s' },
      models: [{ name: MODEL, tokenizer: tokenizerOf(FOLDER), migration: 3, workers }],
      ...config,
    });
  }

  /** The servers behind Baton. */
  get workers() {
    return [this.prefill, this.decode];
  }

  async idle() {
    await Promise.all(this.workers.map((server) => server.idle()));
  }
}

/** One request: {status, headers, text, body, choices, usage, error}, `choices` being what a stream adds up to. */
export async function ask({ address }, body, { path = pathOf(body), headers = {} } = {}) {
  const sent = typeof body === 'string' ? body : JSON.stringify(body);
  const raw = await inTime('an answer', request(address, { path, body: sent, headers }), ANSWERED_WITHIN);
  return { ...raw, ...(raw.text.startsWith('data:') ? readStream(raw.text) : readWhole(raw.text)) };
}

function readWhole(text) {
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    return { body: text, choices: [] };
  }
  return { body, choices: body.choices ?? [], usage: body.usage, error: body.error };
}

export function readStream(text) {
  const stream = { choices: [], done: 0 };
  for (const data of eventsOf(text)) {
    if (data === '[DONE]') {
      ++stream.done;
      continue;
    }
    const event = JSON.parse(data);
    if (event.error) stream.error = event.error;
    if (event.usage) stream.usage = event.usage;
    for (const choice of event.choices ?? []) add((stream.choices[choice.index] ??= { index: choice.index }), choice);
  }
  return stream;
}

/** Adds one piece of a streamed choice: texts and lists grow, the rest is the last that was said. */
function add(whole, piece) {
  for (const [key, value] of Object.entries(piece)) {
    if (value === null || value === undefined || key === 'index') continue;
    if (typeof value === 'string' && ['content', 'text', 'arguments'].includes(key)) whole[key] = (whole[key] ?? '') + value;
    else if (key === 'tool_calls') for (const call of value) add(((whole.tool_calls ??= [])[call.index ?? 0] ??= {}), call);
    else if (Array.isArray(value)) whole[key] = [...(whole[key] ?? []), ...value];
    else if (typeof value === 'object') add((whole[key] ??= {}), value);
    else whole[key] = value;
  }
}

/** An answer without that which differs in every answer. */
export function lasting(value) {
  if (Array.isArray(value)) return value.map(lasting);
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).filter(([key]) => !VOLATILE.has(key));
  return Object.fromEntries(kept.map(([key, inner]) => [key, lasting(inner)]));
}

/** The value, with numbers that are almost those of another taken from there: vLLM 0.12's sums depend on where the prompt is cut. */
function close(value, other) {
  if (typeof value === 'number' && typeof other === 'number') return OLD_VLLM && Math.abs(value - other) < 1e-4 ? other : value;
  if (Array.isArray(value) && Array.isArray(other)) return value.map((inner, i) => close(inner, other[i]));
  if (value === null || other === null || typeof value !== 'object' || typeof other !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, close(inner, other[key])]));
}

/** Asks the aggregated server and Baton the same; status, choices, usage and error must be equal. Returns Baton's answer. */
export async function same(suite, body, { usage = true, ...options } = {}) {
  const direct = await ask(suite.direct, body, options);
  const answer = await ask(suite.baton, body, options);
  assert.equal(answer.status, direct.status, `direct: ${direct.text}\nBaton: ${answer.text}`);
  assert.deepEqual(close(lasting(answer.choices), lasting(direct.choices)), lasting(direct.choices));
  assert.deepEqual(lasting(answer.error), lasting(direct.error));
  if (usage) assert.deepEqual(answer.usage, direct.usage);
  if (body.stream && direct.status === 200) assert.equal(answer.done, direct.done, 'ends of the stream');
  return answer;
}
