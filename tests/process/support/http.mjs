// SPDX-License-Identifier: Apache-2.0
// HTTP as bytes: a socket on which tests write what they like and read answers one by one, and simple calls on top.
import http from 'node:http';
import net from 'node:net';
import tls from 'node:tls';

const split = (address) => {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
};

/** A client connection under the test's full control. */
export class RawConnection {
  #buffer = Buffer.alloc(0);
  #wake = () => {};
  #ended = false;

  /** `from` is the address of this machine to connect from. */
  static async open(address, tlsOptions, from) {
    const target = { ...split(address), localAddress: from };
    const socket = tlsOptions ? tls.connect({ ...target, ...tlsOptions }) : net.connect(target);
    await new Promise((resolve, reject) => {
      socket.once(tlsOptions ? 'secureConnect' : 'connect', resolve).once('error', reject);
    });
    return new RawConnection(socket);
  }

  constructor(socket) {
    this.socket = socket;
    socket.on('data', (data) => {
      this.#buffer = Buffer.concat([this.#buffer, data]);
      this.#wake();
    });
    const end = () => {
      this.#ended = true;
      this.#wake();
    };
    socket.on('end', end).on('close', end).on('error', end);
  }

  write(bytes) {
    this.socket.write(bytes);
    return this;
  }

  destroy() {
    this.socket.destroy();
  }

  /** Resolves when the other side has closed. */
  async closed() {
    while (!this.#ended) await this.#more();
  }

  #more() {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  async #take(length) {
    while (this.#buffer.length < length) {
      if (this.#ended) throw new Error(`connection closed after ${JSON.stringify(this.#buffer.toString())}`);
      await this.#more();
    }
    const taken = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return taken;
  }

  async #takeThrough(mark) {
    for (;;) {
      const at = this.#buffer.indexOf(mark);
      if (at >= 0) return (await this.#take(at + mark.length)).toString('latin1');
      if (this.#ended) throw new Error(`connection closed after ${JSON.stringify(this.#buffer.toString())}`);
      await this.#more();
    }
  }

  async #takeChunks() {
    const chunks = [];
    for (;;) {
      const size = parseInt(await this.#takeThrough('\r\n'), 16);
      const chunk = await this.#take(size);
      await this.#takeThrough('\r\n');
      if (size === 0) return Buffer.concat(chunks);
      chunks.push(chunk);
    }
  }

  async #takeRest() {
    await this.closed();
    return this.#take(this.#buffer.length);
  }

  /** Head of the next answer: {status, headers}. */
  async head() {
    const [statusLine, ...lines] = (await this.#takeThrough('\r\n\r\n')).trimEnd().split('\r\n');
    const headers = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    return { status: Number(statusLine.split(' ')[1]), headers };
  }

  /** The next whole answer: {status, headers, text}. `to` names a method whose answers have no body. */
  async response({ to = 'GET' } = {}) {
    const head = await this.head();
    const { headers, status } = head;
    let body = Buffer.alloc(0);
    if (to === 'HEAD' || status === 204 || status === 304 || status < 200) body = Buffer.alloc(0);
    else if (/chunked/i.test(headers['transfer-encoding'] ?? '')) body = await this.#takeChunks();
    else if (headers['content-length'] !== undefined) body = await this.#take(Number(headers['content-length']));
    else body = await this.#takeRest();
    return { ...head, text: body.toString() };
  }
}

/** Text of a request as it goes over the wire. */
export function wire(method, path, headers = {}, body = '') {
  const all = { Host: 'test', ...headers };
  if (body.length > 0 && !('Transfer-Encoding' in all) && !('Content-Length' in all)) {
    all['Content-Length'] = Buffer.byteLength(body);
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** One call on a connection of its own: {status, headers, text, complete}. Never throws once it is connected. */
export function request(address, { method = 'POST', path, headers = {}, body, signal, agent = false } = {}) {
  return new Promise((resolve, reject) => {
    const call = http.request({ ...split(address), method, path, headers: bodyHeaders(headers, body), signal, agent });
    call.on('error', reject);
    call.on('response', (answer) => {
      let text = '';
      const done = (complete) => resolve({ status: answer.statusCode, headers: answer.headers, text, complete });
      answer.setEncoding('utf8').on('data', (part) => (text += part));
      answer.on('end', () => done(answer.complete)).on('error', () => done(false));
    });
    call.end(body);
  });
}

function bodyHeaders(headers, body) {
  if (body === undefined) return headers;
  return { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers };
}

export async function fetchText(address, path) {
  return (await request(address, { method: 'GET', path })).text;
}

/** Data of the server-sent events in a text. */
export function eventsOf(text) {
  return text
    .split(/\r?\n\r?\n/)
    .map((event) => event.split(/\r?\n/).filter((line) => line.startsWith('data:')))
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n'));
}

/** What a chat or completions answer amounts to: {text, finish, done, error, usage}, streamed or not. */
export function readAnswer({ status, text, complete = true }) {
  if (!/^\s*(:.*\s+)*data:/.test(text)) {
    let body;
    try {
      body = JSON.parse(text);
    } catch {
      return { status, broken: text, complete };
    }
    if (status !== 200) return { status, error: body.error, complete };
    const [choice] = body.choices;
    const said = choice.text ?? choice.message.content;
    return { status, complete, done: complete, text: said, finish: choice.finish_reason, usage: body.usage };
  }
  const answer = { status, complete, text: '', done: false };
  for (const data of eventsOf(text)) {
    if (data === '[DONE]') {
      answer.done = true;
      continue;
    }
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      answer.broken = data;
      continue;
    }
    if (event.error) answer.error = event.error;
    if (event.usage) answer.usage = event.usage;
    const [choice] = event.choices ?? [];
    answer.text += choice?.text ?? choice?.delta?.content ?? '';
    answer.finish = choice?.finish_reason ?? answer.finish;
  }
  return answer;
}
