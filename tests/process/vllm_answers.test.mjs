// SPDX-License-Identifier: Apache-2.0
// The simulated vLLM against recorded answers of a real one: names and types of all fields, values where they are known.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';

import { ask, normalise, readCases } from './support/engine_record.mjs';
import { Sim } from './support/fleet.mjs';
import { scenario } from './support/scenario.mjs';

const FIXTURES = fileURLToPath(new URL('../fixtures/vllm-0.32.0', import.meta.url));

// How the server was started whose answers a file holds.
const SERVERS = {
  'prefill.json': { role: 'prefill', toolCallParser: 'hermes', enableAutoToolChoice: true },
  'tools.json': { toolCallParser: 'hermes', enableAutoToolChoice: true },
};
const USUAL = { model: 'tiny', maxModelLen: 2048, blockSize: 32, blocks: 4096 };

// Fields that have the same value everywhere.
const KNOWN = new Set([
  'object', 'model', 'role', 'index', 'finish_reason', 'stop_reason', 'owned_by', 'parent', 'max_model_len', 'service_tier',
  'do_remote_prefill', 'do_remote_decode', 'tp_size', 'dcp_size', 'pp_size', 'transfer_mode', 'type', 'code', 'param', 'version',
  'organization', 'is_blocking', 'allow_view', 'allow_sampling', 'server_load', 'allow', 'content-type', 'vary', 'server',
]);

// Long lists of one error for each kind of message, part or format; the simulator names the first. The place in a broken text
// and what a grammar's compiler says are the engine's own.
const OTHER_WORDS = new Set([
  'message without role', 'content as a number', 'unknown part', 'unknown response_format', 'response_format as text',
  'bad regex', 'not JSON', 'completion: not JSON', 'negative token', 'completion: negative token',
]);
// Left out: the simulator has no such figures.
const OTHER_METRICS = new Set([
  'vllm:iteration_tokens_total', 'vllm:admission_rejections_total', 'vllm:estimated_flops_per_gpu_total',
  'vllm:estimated_read_bytes_per_gpu_total', 'vllm:estimated_write_bytes_per_gpu_total', 'vllm:tool_call_parser_invocations_total',
]);

const isMap = (path) => /prompt_logprobs\[\]$/.test(path) || /\.top_logprobs\[\]$/.test(path);

/** Names and types, all the way down; of a list, those of its elements, each once. */
function shapeOf(value, path = '') {
  if (value === null) return 'null';
  if (Array.isArray(value)) {
    const inside = value.map((one) => JSON.stringify(shapeOf(one, `${path}[]`)));
    return { list: [...new Set(inside)].sort() };
  }
  if (typeof value !== 'object') return typeof value;
  // Keyed by tokens, unless it is a chat's list of tokens.
  if (isMap(path) && value.token === undefined) {
    return { map: [...new Set(Object.values(value).map((one) => JSON.stringify(shapeOf(one, `${path}.*`))))].sort() };
  }
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, shapeOf(value[name], `${path}.${name}`)]));
}

/** Known values with where they are. */
function known(value, path = '') {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, one]) => {
    const here = `${path}.${name}`;
    return KNOWN.has(name) && (one === null || typeof one !== 'object') ? [[here, one]] : known(one, here);
  });
}

const eventShapes = (events) => [...new Set(events.map((one) => JSON.stringify(shapeOf(one))))].sort();

function compare({ name, status, headers, answer, events, metrics }, given) {
  assert.equal(given.status, status, JSON.stringify(given.answer ?? given.text));
  assert.deepEqual(Object.keys(given.headers).sort(), Object.keys(headers).sort(), 'headers');
  if (events) assert.deepEqual(eventShapes(given.events), eventShapes(events));
  if (metrics) {
    const wanted = Object.entries(metrics).filter(([family]) => !OTHER_METRICS.has(family));
    for (const [family, { type, labels }] of wanted) {
      if (family === 'vllm:cache_config_info') continue;
      assert.deepEqual(given.metrics[family], { type, labels }, family);
    }
    for (const label of given.metrics['vllm:cache_config_info'].labels) {
      assert.ok(metrics['vllm:cache_config_info'].labels.includes(label), label);
    }
    const unknown = Object.keys(given.metrics).filter((family) => !(family in metrics));
    assert.deepEqual(unknown, []);
  }
  if (!answer) return;
  assert.deepEqual(shapeOf(given.answer), shapeOf(answer));
  if (OTHER_WORDS.has(name)) {
    assert.equal(given.answer.error.type, answer.error.type);
  } else {
    assert.deepEqual(known({ ...given.answer, headers: given.headers }), known({ ...answer, headers }));
    // How many words the vocabulary has is the model's own.
    const words = (error) => error?.message.replaceAll(/\b(151936|262144)\b/g, 'N');
    assert.equal(words(given.answer.error), words(answer.error));
  }
}

const cases = await readCases(FIXTURES);
for (const file of new Set(cases.map((one) => one.file))) {
  scenario(`answers as vLLM 0.32.0 did: ${file}`, async (s) => {
    const sim = await Sim.start(s, { ...USUAL, ...SERVERS[file] });
    for (const one of cases.filter((other) => other.file === file)) {
      await s.step(one.name, async () => {
        const body = one.body && { ...one.body, ...one.instead };
        compare(one, normalise(await ask(sim.address, { ...one, headers: one.sent, body })));
      });
    }
  });
}
