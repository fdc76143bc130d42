// SPDX-License-Identifier: Apache-2.0
// Requests that are none: what a smuggler tries is refused with one answer, the connection is closed, and no worker sees any of it.
import assert from 'node:assert/strict';

import { CHAT, chat } from './support/ask.mjs';
import { wire } from './support/http.mjs';
import { inTime } from './support/process.mjs';
import { refusal, withFake } from './support/raw_client.mjs';
import { scenario } from './support/scenario.mjs';

scenario('a body that is made to be dear is refused with what is too much of it', async (s) => {
  const { engine, open } = await withFake(s);
  const cases = {
    'more members than needed': [`{"model":"demo","messages":[]${',"\\u0061":1'.repeat(300_000)}}`, /more than 4096 members/],
    'nesting without end': [`{"model":"demo","messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, /nested too deeply/],
    'a salt of a megabyte': [JSON.stringify(chat('x', { cache_salt: 'x'.repeat(1 << 20) })), /"cache_salt" is longer than 65536 bytes/],
  };
  for (const [name, [body, sentence]] of Object.entries(cases)) {
    await s.step(name, async () => {
      const connection = (await open()).write(wire('POST', CHAT, {}, body));
      const answer = await inTime('a refusal', connection.response());
      assert.equal(answer.status, 400, answer.text);
      assert.match(JSON.parse(answer.text).error.message, sentence);
      connection.destroy();
    });
  }
  assert.equal(engine.legs.length, 0);
});

const BODY = JSON.stringify(chat('x'));
const LENGTH = `Content-Length: ${BODY.length}\r\n`;
const START = `POST ${CHAT} HTTP/1.1\r\nHost: x\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
// What must not be taken for a request of its own.
const INNER = `GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n`;

const get = (line, ...fields) => `${[line, 'Host: x', ...fields].join('\r\n')}\r\n\r\n`;

const LENGTHS = {
  'length and chunked': `${START}${LENGTH}${CHUNKED}\r\n0\r\n\r\n${INNER}`,
  'chunked and length': `${START}${CHUNKED}${LENGTH}\r\n0\r\n\r\n${INNER}`,
  'two lengths': `${START}${LENGTH}Content-Length: 5\r\n\r\n${BODY}`,
  'a list of lengths': `${START}Content-Length: ${BODY.length}, 5\r\n\r\n${BODY}`,
  'a signed length': `${START}Content-Length: +${BODY.length}\r\n\r\n${BODY}`,
  'a negative length': `${START}Content-Length: -1\r\n\r\n${BODY}`,
  'a length beyond numbers': `${START}Content-Length: 99999999999999999999999\r\n\r\n${BODY}`,
  'a length in hexadecimal': `${START}Content-Length: 0x10\r\n\r\n${BODY}`,
  'a length with a fraction': `${START}Content-Length: 1.0\r\n\r\n${BODY}`,
  'a length with a blank inside': `${START}Content-Length: 1 0\r\n\r\n${BODY}`,
  'an empty length': `${START}Content-Length:\r\n\r\n${BODY}`,
  'blank before the colon': `${START}Content-Length : ${BODY.length}\r\n\r\n${BODY}`,
  'tab before the colon': `${START}Content-Length\t: ${BODY.length}\r\n\r\n${BODY}`,
};

const CODINGS = {
  'chunked twice': `${START}${CHUNKED}${CHUNKED}\r\n0\r\n\r\n`,
  'chunked in one list twice': `${START}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
  'chunked not last': `${START}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  'identity and chunked': `${START}Transfer-Encoding: identity\r\n${CHUNKED}\r\n${CHUNKS}`,
  'an unknown encoding': `${START}Transfer-Encoding: xchunked\r\n\r\n${CHUNKS}`,
  'a vertical tab before chunked': `${START}Transfer-Encoding: \x0bchunked\r\n\r\n${CHUNKS}`,
  'chunked in quotes': `${START}Transfer-Encoding: "chunked"\r\n\r\n${CHUNKS}`,
  'chunked of HTTP/1.0': `POST ${CHAT} HTTP/1.0\r\nHost: x\r\n${CHUNKED}\r\n${CHUNKS}`,
  'a chunk size in hexadecimal of another kind': `${START}${CHUNKED}\r\n0x5\r\nhello\r\n0\r\n\r\n`,
  'a signed chunk size': `${START}${CHUNKED}\r\n+5\r\nhello\r\n0\r\n\r\n`,
  'a blank before a chunk size': `${START}${CHUNKED}\r\n 5\r\nhello\r\n0\r\n\r\n`,
  'a chunk size beyond numbers': `${START}${CHUNKED}\r\nffffffffffffffff5\r\nhello\r\n0\r\n\r\n`,
  'no chunk size': `${START}${CHUNKED}\r\n\r\nhello\r\n0\r\n\r\n`,
  'a chunk longer than it says': `${START}${CHUNKED}\r\n3\r\nhello\r\n0\r\n\r\n`,
  'a chunk shorter than it says': `${START}${CHUNKED}\r\n7\r\nhello\r\n0\r\n\r\n${INNER}`,
  'a bare line feed after a chunk size': `${START}${CHUNKED}\r\n5\nhello\r\n0\r\n\r\n`,
  'a line feed in a chunk extension': `${START}${CHUNKED}\r\n5;a\nb\r\nhello\r\n0\r\n\r\n`,
  'a zero byte in a chunk size': `${START}${CHUNKED}\r\n5\0\r\nhello\r\n0\r\n\r\n`,
  'a bare line feed in a trailer': `${START}${CHUNKED}\r\n0\r\nA: b\n\r\n`,
};

const FIELDS = {
  'folded header': `${START}X-Folded: a\r\n b\r\n${LENGTH}\r\n${BODY}`,
  'a blank before the first field': `POST ${CHAT} HTTP/1.1\r\n Host: x\r\n${LENGTH}\r\n${BODY}`,
  'bare line feeds': `${START}${LENGTH}\r\n${BODY}`.replaceAll('\r\n', '\n'),
  'one bare line feed': `${START}X-A: 1\n${LENGTH}\r\n${BODY}`,
  'a line feed before the end of the head': `${START}${LENGTH}\n${BODY}`,
  'carriage return in a value': `${START}X-A: 1\r2\r\n${LENGTH}\r\n${BODY}`,
  'zero byte in a value': `${START}X-A: 1\0\r\n${LENGTH}\r\n${BODY}`,
  'zero byte in a name': `${START}X\0A: 1\r\n${LENGTH}\r\n${BODY}`,
  'blank in a name': `${START}X A: 1\r\n${LENGTH}\r\n${BODY}`,
  'a name of other letters': `${START}X-\xc4: 1\r\n${LENGTH}\r\n${BODY}`,
  'no name': `${START}: 1\r\n${LENGTH}\r\n${BODY}`,
  'no colon': `${START}X-A\r\n${LENGTH}\r\n${BODY}`,
  'no host': 'GET /v1/models HTTP/1.1\r\n\r\n',
  'two hosts': 'GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
};

const LINES = {
  'no version': get('GET /v1/models'),
  'a version in small letters': get('GET /v1/models http/1.1'),
  'a version that does not exist': get('GET /v1/models HTTP/1.9.1'),
  'two blanks': get('GET  /v1/models HTTP/1.1'),
  'tabs for blanks': get('GET\t/v1/models\tHTTP/1.1'),
  'a zero byte in the path': get('GET /v1/\0models HTTP/1.1'),
  'a carriage return in the path': get('GET /v1/\rmodels HTTP/1.1'),
  'a blank in the path': get('GET /v1/ models HTTP/1.1'),
  'a blank before the method': get(' GET /v1/models HTTP/1.1'),
  'a colon in the method': get('GE:T /v1/models HTTP/1.1'),
  'not HTTP': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
  'another version, announced': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
};

scenario('smuggling is refused and the connection closed', async (s) => {
  const { engine, open } = await withFake(s, { timeouts: { client_body: '1s' } });
  for (const [name, bytes] of Object.entries({ ...LENGTHS, ...CODINGS, ...FIELDS, ...LINES })) {
    await s.step(name, async () => {
      await refusal((await open()).write(Buffer.from(bytes, 'latin1')), 400);
      assert.equal(engine.legs.length, 0, 'nothing of it reached the engine');
    });
  }
});
