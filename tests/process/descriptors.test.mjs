// SPDX-License-Identifier: Apache-2.0
// More connections than there are descriptors, or than a limit allows: they wait or are refused, the router answers its operators,
// and no worker is blamed for what the router's own machine lacks.
import assert from 'node:assert/strict';

import { ask, chat, checkExact } from './support/ask.mjs';
import { makeCertificate } from './support/certificate.mjs';
import { Fleet } from './support/fleet.mjs';
import { RawConnection, request, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const connections = (address, count) => Promise.all(Array.from({ length: count }, () => RawConnection.open(address)));
const destroy = (all) => all.forEach((one) => one.destroy());

const get = (address, path) => inTime(`GET ${path}`, request(address, { method: 'GET', path }));

async function checkHealthy({ router, sims }) {
  assert.equal((await get(router.admin, '/health')).status, 200);
  for (const sim of sims) {
    const worker = await router.workerAt(sim);
    assert.equal(worker.state, 'ready', JSON.stringify(worker));
  }
}

scenario('no descriptors are left for clients', async (s) => {
  const config = { threads: 2 };
  const fleet = await Fleet.start(s, { config, sim: { decodeMs: 5 }, descriptors: 128 });
  const { router } = fleet;
  const [few] = await router.logged('descriptors_few');
  assert.equal(few.limit, 128);
  assert.ok(few.fit > 0 && few.fit < 40, `${few.fit} fit`);

  await s.step('idle connections wait in the kernel, and the admin address answers', async () => {
    const idle = await connections(router.address, 200);
    await until('accepting pauses', async () => (await router.metric('baton_accept_pauses_total', { limit: 'descriptors' })) > 0);
    await checkHealthy(fleet);
    assert.ok((await router.metric('baton_client_connections')) < 64);
    const lines = await router.logged('descriptors_short');
    assert.match(lines[0].hint, /ulimit -n/);
    const waiting = (await RawConnection.open(router.address)).write(wire('GET', '/v1/models'));
    destroy(idle);
    assert.equal((await inTime('the one that waited is served', waiting.response())).status, 200);
    waiting.destroy();
  });

  await s.step('requests that want more connections to workers than there are get 503', async () => {
    const bodies = Array.from({ length: 16 }, (_, i) => chat(`many ${i}`, { n: 24, stream: true }));
    const asked = Promise.all(bodies.map((body) => ask(router, body)));
    const refused = () => router.metric('baton_limit_refusals_total', { limit: 'descriptors' });
    await until('some are refused', async () => (await refused()) > 0);
    await checkHealthy(fleet);
    const answers = await asked;
    const errors = answers.map(({ error }) => error).filter(Boolean);
    assert.ok(errors.length > 0);
    for (const error of errors) assert.equal(error.code, 'out_of_resources', JSON.stringify(error));
    const plain = answers.filter(({ status }) => status !== 200);
    for (const { status, headers } of plain) assert.deepEqual([status, headers['retry-after']], [503, '1']);
    await checkHealthy(fleet);
  });

  await s.step('afterwards all is as before', async () => {
    await fleet.idle();
    const body = chat('after');
    checkExact(await ask(router, body), body);
    await checkHealthy(fleet);
    assert.deepEqual(router.logLines('leg_failed'), []);
    assert.deepEqual(router.logLines('worker_changed').filter(({ reason }) => reason), []);
  });
});

scenario('more admin connections than there may be', async (s) => {
  const fleet = await Fleet.start(s, { counts: { aggregated: 1 } });
  const { router } = fleet;
  const silent = await connections(router.admin, 100);
  const asking = await connections(router.admin, 200);
  for (const one of asking) assert.equal((await inTime('/health', one.write(wire('GET', '/health')).response())).status, 200);
  await inTime('the oldest is closed', silent[0].closed());
  for (let i = 0; i < 20; ++i) await checkHealthy(fleet);
  const last = asking.at(-1).write(wire('GET', '/ready'));
  assert.equal((await inTime('one that asked a moment ago is still there', last.response())).status, 200);
  destroy([...silent, ...asking]);
});

scenario('more connections over TLS than there may be', async (s) => {
  const [certificate, key] = [s.file('certificate.pem'), s.file('key.pem')];
  await makeCertificate(certificate, key);
  const config = { tls: { certificate, key }, limits: { connections: 4 } };
  const { router } = await Fleet.start(s, { counts: { aggregated: 1 }, config });
  const open = () => RawConnection.open(router.address, { rejectUnauthorized: false });
  const models = async (connection) => (await inTime('models', connection.write(wire('GET', '/v1/models')).response())).status;
  const inside = await Promise.all([open(), open(), open(), open()]);
  for (const one of inside) assert.equal(await models(one), 200);

  const outside = await connections(router.address, 200);
  for (const one of outside) {
    await inTime('the end', one.closed());
    await assert.rejects(one.response(), /connection closed after ""/, 'no handshake was begun');
  }
  await assert.rejects(open());
  assert.ok((await router.metric('baton_limit_refusals_total', { limit: 'connections' })) > 200);
  for (const one of inside) assert.equal(await models(one), 200);
  destroy(inside);
  await until('room again', async () => {
    const next = await open().catch(() => undefined);
    if (!next) return false;
    const status = await models(next).catch(() => 0);
    next.destroy();
    return status === 200;
  });
});
