// SPDX-License-Identifier: Apache-2.0
// The simulated vLLM against recorded answers of a real one: names and types of all fields, values where they are known.
import { fileURLToPath } from 'node:url';

import { compareWithRecorded } from './support/engine_compare.mjs';
import { compareKvEvents } from './support/kv_recorded.mjs';

const FIXTURES = fileURLToPath(new URL('../fixtures/vllm-0.32.0', import.meta.url));

// How the server was started whose answers a file holds.
const SERVERS = {
  'prefill.json': { role: 'prefill', toolCallParser: 'hermes', enableAutoToolChoice: true },
  'tools.json': { toolCallParser: 'hermes', enableAutoToolChoice: true },
};

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

await compareWithRecorded('answers as vLLM 0.32.0 did', {
  fixtures: FIXTURES,
  sim: { model: 'tiny', maxModelLen: 2048, blockSize: 32, blocks: 4096 },
  servers: SERVERS,
  known: KNOWN,
  otherWords: OTHER_WORDS,
  someLabels: new Set(['vllm:cache_config_info']),
  // How many words the vocabulary has is the model's own.
  words: (message) => message?.replaceAll(/\b(151936|262144)\b/g, 'N'),
  errorOf: ({ error }) => error,
});

compareKvEvents('tells KV events as vLLM 0.32.0 did', {
  file: `${FIXTURES}/kv_events.jsonl`,
  sim: { model: 'tiny', maxModelLen: 2048, blockSize: 32, blocks: 128 },
});
