// SPDX-License-Identifier: Apache-2.0
// A log whose reader stalls: requests are served on, what is dropped is counted and told, and the process can end.
import assert from 'node:assert/strict';

import { Router, Sim } from './support/fleet.mjs';
import { RawConnection, fetchText, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const BATCH = 100; // requests written at once
const DROPPED = 'baton_log_lines_dropped_total';

/** Requests for an unknown model, one log line each, until `enough()`; each must be answered. Returns how many. */
async function requestsUntil(router, enough) {
  const connection = await RawConnection.open(router.address);
  const one = wire('POST', '/v1/chat/completions', {}, JSON.stringify({ model: 'nobody', messages: [] }));
  let sent = 0;
  do {
    connection.write(one.repeat(BATCH));
    for (let i = 0; i < BATCH; ++i) {
      const answer = await inTime('an answer while the log stalls', connection.response());
      assert.equal(answer.status, 404);
    }
    sent += BATCH;
  } while (!(await enough()));
  connection.destroy();
  return sent;
}

async function stalled(s) {
  const sim = await Sim.start(s);
  const router = await Router.start(s, { models: [{ name: 'demo', workers: [sim.worker()] }] });
  const reader = router.process.child.stderr;
  reader.pause();
  const sent = await requestsUntil(router, async () => (await router.metric(DROPPED)) > 0);
  return { router, reader, sent };
}

scenario('an unread log holds up no request, and what was dropped is told', async (s) => {
  const { router, reader, sent } = await stalled(s);
  await inTime('liveness', fetchText(router.admin, '/health'));
  reader.resume();
  const told = () => router.logLines('log_lines_dropped').reduce((sum, { lines }) => sum + lines, 0);
  await until('every request is in the log or told of', () => router.logLines('request').length + told() >= sent);
  assert.equal(told(), await router.metric(DROPPED));
  assert.equal(router.logLines('request').length + told(), sent);
  // What comes next is in the log again.
  const [before, dropped] = [router.logLines('request').length, await router.metric(DROPPED)];
  const more = await requestsUntil(router, () => true);
  await until('later lines', () => router.logLines('request').length === before + more);
  assert.equal(await router.metric(DROPPED), dropped);
});

scenario('SIGTERM ends a router whose log is not read', async (s) => {
  const { router, reader } = await stalled(s);
  const { child } = router.process;
  router.process.signal('SIGTERM');
  await until('its end', () => child.exitCode !== null || child.signalCode !== null);
  assert.deepEqual([child.exitCode, child.signalCode], [0, null]);
  reader.resume();
});
