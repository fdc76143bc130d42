// SPDX-License-Identifier: Apache-2.0
// The smallest vLLM look-alike inside the test: it keeps the exact bytes of what arrives, which the simulator, being a
// program of ours with a parser of ours, could hide.
import http from 'node:http';

/** What the fake prefill worker returns; the number types and the odd keys must reach the decode leg unchanged. */
export const KV_TRANSFER_PARAMS =
  '{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[1,2,18446744073709551615]],' +
  '"remote_engine_id":"e\\u002d1","remote_request_id":"cmpl-1","remote_host":"127.0.0.1","remote_port":5600,' +
  '"tp_size":1,"expiry":1.50,"unknown_to_router":{"deep":[null,true,1e3]}}';

/** Members of every answer that no router knows; the second number is beyond every integer type. */
export const UNKNOWN = '"x_engine":18446744073709551615,"x_huge":123456789012345678901234567890';

const chunk = (delta, finish = null) =>
  `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"demo",${UNKNOWN},` +
  `"choices":[{"index":0,"delta":${delta},"finish_reason":${JSON.stringify(finish)}}]}\n\n`;

export class FakeEngine {
  legs = []; // {path, method, headers, rawHeaders, body: Buffer, connection: number, prefill, stream}
  connections = 0;
  /** Replaces the normal answer: (leg, response) → true when it has answered. */
  behave = () => false;

  static async start(scenario) {
    const engine = new FakeEngine();
    engine.sockets = new Set();
    engine.server = http.createServer({ keepAliveTimeout: 0 }, (incoming, response) => engine.#serve(incoming, response));
    engine.server.on('connection', (socket) => {
      socket.number = ++engine.connections;
      engine.sockets.add(socket);
      socket.on('close', () => engine.sockets.delete(socket));
    });
    await new Promise((resolve) => engine.server.listen(0, '127.0.0.1', resolve));
    engine.address = `127.0.0.1:${engine.server.address().port}`;
    scenario.after(() => engine.close());
    return engine;
  }

  worker(role = 'aggregated') {
    return { url: `http://${this.address}`, engine: 'vllm', role };
  }

  /** Ends every connection, as an engine's keep-alive timeout does. */
  dropConnections() {
    for (const socket of this.sockets) socket.destroy();
  }

  async close() {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #serve(incoming, response) {
    const parts = [];
    incoming.on('data', (part) => parts.push(part));
    incoming.on('end', () => {
      const body = Buffer.concat(parts);
      const { url: path, method, headers, rawHeaders, socket } = incoming;
      const { kv_transfer_params: params, stream } = body.length > 0 ? JSON.parse(body) : {};
      const prefill = params?.do_remote_decode === true;
      const leg = { path, method, headers, rawHeaders, body, connection: socket.number, prefill, stream };
      const isLeg = method === 'POST' && path !== '/tokenize'; // which the probe asks for
      if (isLeg) this.legs.push(leg);
      if (!isLeg || !this.behave(leg, response)) this.#answer(leg, response);
    });
  }

  #answer({ prefill, stream, method }, response) {
    if (method !== 'POST') return json(response, '{"object":"list","data":[{"id":"demo","object":"model","owned_by":"vllm"}]}');
    const params = prefill ? `,"kv_transfer_params":${KV_TRANSFER_PARAMS}` : '';
    if (stream) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk('{"role":"assistant","content":""}'));
      response.write(chunk('{"content":"hello"}'));
      return response.end(chunk('{}', 'stop') + 'data: [DONE]\n\n');
    }
    const finish = prefill ? 'length' : 'stop';
    return json(
      response,
      `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"demo",${UNKNOWN},"choices":[` +
        `{"index":0,"message":{"role":"assistant","content":"hello","x_more":{"a":[1.0]}},"finish_reason":"${finish}"}],` +
        `"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}${params}}`,
    );
  }
}

export function json(response, text, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/**
 * A stream of `count` events with `bytes` of text each, sent as fast as the connection takes them. Calls `progress`
 * with the bytes handed to the socket so far.
 */
export function bulkStream(response, count, bytes, progress = () => {}) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let sent = 0;
  const pump = () => {
    for (; sent < count; ++sent) {
      const text = `${sent}:${'x'.repeat(bytes)};`;
      progress((sent + 1) * bytes);
      if (!response.write(chunk(`{"content":"${text}"}`))) {
        ++sent;
        response.once('drain', pump);
        return;
      }
    }
    response.end(chunk('{}', 'stop') + 'data: [DONE]\n\n');
  };
  pump();
}
