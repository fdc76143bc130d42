// SPDX-License-Identifier: Apache-2.0
// The simulated SGLang against recorded answers of a real one: names and types of all fields, values where they are known.
import { fileURLToPath } from 'node:url';

import { compareWithRecorded } from './support/engine_compare.mjs';
import { request } from './support/http.mjs';
import { compareKvEvents } from './support/kv_recorded.mjs';

const FIXTURES = fileURLToPath(new URL('../fixtures/sglang-0.5.23', import.meta.url));
const SIM = { engine: 'sglang', model: 'tiny', maxModelLen: 4096, blockSize: 16, blocks: 512, maxSeqs: 8 };

// How the server was started whose answers a file holds.
const SERVERS = {
  'paths.json': { kvEvents: 'tcp://127.0.0.1:0' },
  'prefill.json': { role: 'prefill' },
  'decode.json': { role: 'decode' },
};

// Fields that have the same value everywhere.
const KNOWN = new Set([
  'object', 'model', 'role', 'index', 'finish_reason', 'matched_stop', 'owned_by', 'parent', 'type', 'code', 'param', 'version',
  'allow', 'content-type', 'vary', 'server', 'weight_version', 'reasoning_tokens', 'completion_tokens', 'access-control-allow-origin',
  'disaggregation_mode', 'page_size', 'context_length', 'mode', 'num_running_reqs', 'num_waiting_reqs', 'load_balance_method', 'dp_size',
  'num_accelerators', 'served_model_name', 'is_generation',
]);

// Not asked, because the simulator does otherwise.
const NO_PARTNER = ['fake room', 'streamed, fake room', 'completion, fake room', 'generate without a room'];
const LEFT = {
  // `meta_info` is made of times; tools are called by the simulator though no parser is named; nothing is cached here of so short
  // a prompt in pages of words.
  'chat.json': new Set(['meta info', 'tools left to the model', 'stream with tools left to the model', 'with cached tokens details', 'stream with cached tokens details']),
  // Its own API is not simulated, but for the refusal from which the vocabulary's size is learned.
  'generate.json': new Set([
    'whole', 'token ids', 'two texts', 'two choices', 'with logprobs', 'with logprobs of the prompt', 'with top logprobs', 'named', 'stream',
    'stream with logprobs', 'stop string', 'text and ids', 'negative temperature', 'unknown sampling field', 'stream refused', 'not JSON',
    'no object', 'text as a number', 'by PUT',
  ]),
  // No client asks for loads in that format; the simulator's own tokens have no way back to text.
  'paths.json': new Set(['loads as Prometheus', 'detokenize', 'detokenize lists', 'v1/detokenize', 'detokenize nothing', 'detokenize words']),
  // With an unused room SGLang tries by itself.
  'prefill.json': new Set(NO_PARTNER),
  'decode.json': new Set(NO_PARTNER),
  // An accident: -1 choices are counted as none, and one is made. Grammars are not followed, so no backend is missed.
  'refusals.json': new Set(['n -1', 'json schema without a grammar backend', 'top_logprobs 21']),
};
// Lists of one error for each kind of message, part or format, of which the simulator names the first. The place in a broken
// text, and why a grammar cannot be used, are the engine's own.
const OTHER_WORDS = new Set([
  'not JSON', 'completion: not JSON', 'abort not JSON', 'message without role', 'message of unknown role', 'content as a number',
  'user without content', 'unknown part', 'unknown response_format', 'bad regex', 'completion: bad regex',
]);
// The simulator tells what Baton reads, and little more.
const METRICS = new Set([
  'num_running_reqs', 'num_queue_reqs', 'num_grammar_queue_reqs', 'num_prefill_bootstrap_queue_reqs', 'num_prefill_inflight_queue_reqs',
  'num_decode_prealloc_queue_reqs', 'num_decode_transfer_queue_reqs', 'token_usage', 'max_total_num_tokens', 'page_size',
].map((name) => `sglang:${name}`));

await compareWithRecorded('answers as SGLang 0.5.23 did', {
  fixtures: FIXTURES,
  sim: SIM,
  servers: SERVERS,
  known: KNOWN,
  left: LEFT,
  otherWords: OTHER_WORDS,
  onlyMetrics: METRICS,
  words: (message) =>
    message
      ?.replaceAll(/\b(151935|262143)\b/g, 'N')
      .replaceAll(/'input': \{.*?\}(?=, 'ctx'|\}\n|\}\])/g, "'input': {}")
      .replaceAll(/rid='[0-9a-f]{32}'/g, "rid='X'")
      .replaceAll(/\d+ tokens\b/g, 'N tokens'),
  errorOf: (answer) => (answer?.object === 'error' ? answer : answer?.error),
});

compareKvEvents('tells KV events as SGLang 0.5.23 did', {
  file: `${FIXTURES}/kv_events.jsonl`,
  sim: SIM,
  prepare: (address) => request(address, { path: '/flush_cache', body: '{}' }),
});
