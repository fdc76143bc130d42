// SPDX-License-Identifier: Apache-2.0
// A call whose answer can be watched while it arrives, and left at any moment.
import http from 'node:http';

import { eventsOf } from './http.mjs';

export const PATHS = { chat: '/v1/chat/completions', completion: '/v1/completions' };
export const pathOf = (body) => (body.messages ? PATHS.chat : PATHS.completion);

/** One request on a connection of its own. Never throws: what went wrong is in the result. */
export class Call {
  text = '';
  status = undefined;
  left = false;

  constructor(address, body, headers = {}) {
    const [host, port] = address.split(':');
    const bytes = JSON.stringify(body);
    const all = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(bytes), ...headers };
    this.body = body;
    this.call = http.request({ host, port, method: 'POST', path: pathOf(body), headers: all, agent: false });
    /** {status, headers, text, complete, failed}: `failed` says how the connection broke, if it did. */
    this.ended = new Promise((resolve) => {
      const done = (more) => resolve({ status: this.status, headers: this.headers, text: this.text, ...more });
      this.call.on('error', (error) => done({ complete: false, failed: error.code ?? error.message }));
      this.call.on('response', (answer) => {
        this.status = answer.statusCode;
        this.headers = answer.headers;
        answer.setEncoding('utf8').on('data', (part) => (this.text += part));
        answer.on('end', () => done({ complete: answer.complete }));
        answer.on('error', (error) => done({ complete: false, failed: error.code ?? error.message }));
      });
    });
    this.ended.then(() => (this.over = true));
    this.call.end(bytes);
  }

  /** How many events have come so far; roughly the tokens. */
  get events() {
    return this.text.split('\n\n').length - 1;
  }

  leave() {
    this.left = true;
    this.call.destroy();
  }
}

/** What a stream amounts to, choice by choice, with all that must be the same in every chunk. */
export function readStream(text) {
  const stream = { ids: new Set(), created: new Set(), choices: [], usages: [], chunks: [], done: 0, errors: [] };
  for (const data of eventsOf(text)) {
    if (data === '[DONE]') {
      ++stream.done;
      continue;
    }
    const chunk = JSON.parse(data);
    if (chunk.error) {
      stream.errors.push(chunk.error);
      continue;
    }
    stream.chunks.push(chunk);
    stream.ids.add(chunk.id);
    stream.created.add(chunk.created);
    if (chunk.usage) stream.usages.push(chunk.usage);
    for (const choice of chunk.choices) readChoice(stream, choice);
  }
  return stream;
}

function readChoice(stream, { index, text, delta, finish_reason: finish, token_ids: ids }) {
  const choice = (stream.choices[index] ??= { text: '', finishes: [], roles: 0, tokenIds: [], call: { name: '', arguments: '' } });
  choice.text += text ?? delta?.content ?? '';
  if (delta?.role) ++choice.roles;
  for (const { function: part } of delta?.tool_calls ?? []) {
    choice.call.name += part.name ?? '';
    choice.call.arguments += part.arguments ?? '';
  }
  if (finish) choice.finishes.push(finish);
  if (ids) choice.tokenIds.push(...ids);
}
