// SPDX-License-Identifier: Apache-2.0
// The simulator's answer as a function of the prompt, written down a second time so that the simulator and this
// file would have to make the same mistake for a wrong token to go unnoticed.

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;
const HEADS = 'ka lo mi ru te so na vi pe du ra li mo shi be fo'.split(' ');
const TAILS = 'n ra to mi lu se ki va do ne ri sa tu me lo ha'.split(' ');

function fnv32(bytes) {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

function fnv64OfTokens(tokens) {
  let hash = 0xcbf29ce484222325n;
  for (const token of tokens) {
    for (let shift = 0; shift < 32; shift += 8) {
      hash = ((hash ^ BigInt((token >>> shift) & 0xff)) * 0x100000001b3n) & MASK;
    }
  }
  return hash;
}

function mix(z) {
  z &= MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

const pieceId = (bytes) => (fnv32(bytes) % 50000) + 10;
const marker = (name) => pieceId(Buffer.from(`<|${name}|>`));

function isWordByte(byte) {
  return (
    (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x5f || byte >= 0x80
  );
}

/** Token ids of a plain text. */
export function tokenize(text) {
  const bytes = Buffer.from(text);
  const tokens = [];
  for (let at = 0; at < bytes.length; ) {
    let end = at + 1;
    if (isWordByte(bytes[at])) while (end < bytes.length && isWordByte(bytes[end])) ++end;
    tokens.push(pieceId(bytes.subarray(at, end)));
    at = end;
  }
  return tokens;
}

function contentText(content) {
  if (content == null) return '';
  if (typeof content === 'string') return content;
  return content.filter((part) => part.type === 'text').map((part) => part.text).join('');
}

/** Token ids of a chat request's prompt. */
export function renderChat({ messages, tools = [] }) {
  const tokens = [];
  if (tools.length > 0) {
    tokens.push(marker('tools'));
    for (const tool of tools) tokens.push(...tokenize(tool.function.name));
    tokens.push(marker('end'));
  }
  for (const message of messages) {
    tokens.push(marker(message.role), ...tokenize(contentText(message.content)));
    for (const call of message.tool_calls ?? []) {
      tokens.push(...tokenize(call.function.name), ...tokenize(call.function.arguments));
    }
    tokens.push(marker('end'));
  }
  tokens.push(marker('assistant'));
  return tokens;
}

// Ids of produced tokens, which no piece of a text has.
const FIRST_OUTPUT_ID = 60000;

const bitsAt = (hash, index) => Number(mix(hash + BigInt(index + 1) * GOLDEN) & 255n);
const outputId = (hash, index) => FIRST_OUTPUT_ID + bitsAt(hash, index);
const wordAt = (hash, index) => HEADS[bitsAt(hash, index) % 16] + TAILS[bitsAt(hash, index) >> 4];

/**
 * Which answer a prompt gets as choice k, and how many tokens of it are already at the prompt's end: the longest tail
 * of produced ids that is the beginning of the answer to what comes before it.
 */
function originOf(tokens, { seed }, k = 0) {
  const vary = (hash) => (seed == null ? hash + BigInt(k) : hash ^ mix(BigInt(seed) + BigInt(k) + GOLDEN)) & MASK;
  const isOutput = (id) => id >= FIRST_OUTPUT_ID && id < FIRST_OUTPUT_ID + 256;
  let split = tokens.length;
  while (split > 0 && isOutput(tokens[split - 1])) --split;
  for (; ; ++split) {
    const hash = vary(fnv64OfTokens(tokens.slice(0, split)));
    if (tokens.slice(split).every((id, i) => id === outputId(hash, i))) return { hash, begun: tokens.length - split };
  }
}

function naturalLength(hash, { minOutput = 16, maxOutput = 64 }) {
  return minOutput + Number(mix(hash ^ 0xa5a5a5a5a5a5a5a5n) % BigInt(maxOutput - minOutput + 1));
}

function continuation({ hash, begun }, request, cap, limits) {
  const natural = request.ignore_eos
    ? Infinity
    : Math.max(naturalLength(hash, limits) - begun, request.min_tokens ?? 0);
  const length = Math.min(natural, cap);
  const stops = [request.stop ?? []].flat();
  const ids = [];
  let text = '';
  for (let i = 0; i < length; ++i) {
    ids.push(outputId(hash, begun + i));
    text += (begun + i === 0 ? '' : ' ') + wordAt(hash, begun + i);
    const cuts = stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    if (cuts.length > 0) {
      return { text: text.slice(0, Math.min(...cuts)), finish: 'stop', tokens: i + 1, ids };
    }
  }
  return { text, finish: length === cap ? 'length' : 'stop', tokens: length, ids };
}

const promptsOf = ({ prompt }) => {
  if (typeof prompt === 'string') return [tokenize(prompt)];
  if (typeof prompt[0] === 'number') return [prompt];
  return prompt.map((one) => (typeof one === 'string' ? tokenize(one) : one));
};

/** Token ids of the prompt of a chat body, rendered or as the engine's own field for them gives them. */
const chatTokens = (request) =>
  request.kv_transfer_params?.prompt_token_ids ?? request.input_ids ?? request.prompt_token_ids ?? renderChat(request);

/**
 * What a correct fleet answers to a request body: per choice {text, finish, ids} or {toolCall, finish}, and the usage.
 * `limits` repeats the simulator's --min-output and --max-output.
 */
export function expectedAnswer(request, limits = {}) {
  const chat = request.messages !== undefined;
  const prompts = chat ? [chatTokens(request)] : promptsOf(request);
  const cap = request.max_completion_tokens ?? request.max_tokens ?? (chat ? Infinity : 16);
  const choices = prompts.flatMap((tokens) => {
    if (chat && callsTool(request)) return [toolChoice(originOf(tokens, request).hash, request)];
    return Array.from({ length: request.n ?? 1 }, (_, k) =>
      continuation(originOf(tokens, request, k), request, cap, limits));
  });
  return {
    choices,
    promptTokens: prompts.reduce((sum, tokens) => sum + tokens.length, 0),
    completionTokens: choices.reduce((sum, choice) => sum + (choice.tokens ?? 0), 0),
  };
}

function callsTool({ tools = [], tool_choice: choice, messages }) {
  return tools.length > 0 && choice !== 'none' && messages.at(-1).role === 'user';
}

function toolChoice(hash, { tools, tool_choice: choice }) {
  const words = Array.from({ length: 8 }, (_, i) => wordAt(hash, i)).join(' ');
  return {
    finish: 'tool_calls',
    toolCall: {
      id: hash.toString(16), // its end; what stands before it is the engine's own
      name: choice?.function?.name ?? tools[0].function.name,
      arguments: `{"text":"${words}"}`,
    },
  };
}

/** First words of the answer to a request: what a test stops on. */
export function firstWord(request) {
  const tokens = request.messages ? chatTokens(request) : promptsOf(request)[0];
  const { hash, begun } = originOf(tokens, request);
  return wordAt(hash, begun);
}
