// SPDX-License-Identifier: Apache-2.0
// A client that writes bytes as it likes, and an engine that keeps what arrives of them.
import assert from 'node:assert/strict';

import { FakeEngine } from './fake_engine.mjs';
import { Router } from './fleet.mjs';
import { RawConnection } from './http.mjs';
import { inTime } from './process.mjs';

export async function withFake(s, config = {}) {
  const engine = await FakeEngine.start(s);
  const router = await Router.start(s, { models: [{ name: 'demo', workers: [engine.worker()] }], ...config });
  return { engine, router, open: () => RawConnection.open(router.address) };
}

/** The refusal of a connection's only request: its error, after which the router closes. */
export async function refusal(connection, status) {
  const response = await inTime('a refusal', connection.response());
  assert.equal(response.status, status, response.text);
  const { error } = JSON.parse(response.text);
  assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
  await inTime('the connection is closed', connection.closed());
  await assert.rejects(connection.response(), /connection closed after ""/, 'nothing else was answered');
  return { ...error, headers: response.headers };
}
