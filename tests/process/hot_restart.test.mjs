// SPDX-License-Identifier: Apache-2.0
// A router that is followed by another one on the same sockets: no client notices.
import assert from 'node:assert/strict';
import { chmod, rm, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';

import { ask, chat, checkExact, completion } from './support/ask.mjs';
import { Call } from './support/call.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { Generations } from './support/generations.mjs';
import { RawConnection, readAnswer, wire } from './support/http.mjs';
import { Audit, untilCache } from './support/kv_book.mjs';
import { load } from './support/load.mjs';
import { BATON, Process, inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';
import { writeTinyModel } from './support/tiny_model.mjs';

const LONG = { minOutput: 300, maxOutput: 300 };

/** Requests one after the other on connections that are kept as long as the router keeps them. */
function keepAlive(router) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const [host, port] = router.address.split(':');
  const failed = [];
  let over = false;
  let served = 0;
  const one = () =>
    new Promise((resolve, reject) => {
      const call = http.get({ agent, host, port, path: '/v1/models' }, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode)).on('error', reject);
      });
      call.on('error', reject);
    });
  const run = (async () => {
    while (!over) {
      await one().then(
        (status) => (status === 200 ? ++served : failed.push(status)),
        (error) => failed.push(error.code ?? error.message),
      );
    }
  })();
  return {
    served: () => served,
    async stop() {
      over = true;
      await run;
      agent.destroy();
      assert.deepEqual(failed, []);
    },
  };
}

/** Streams that run for long, held against what the engine says. */
const streams = (router, count, label) =>
  Array.from({ length: count }, (_, i) => new Call(router.address, chat(`${label} ${i}`, { stream: true })));

async function checkStreams(calls, limits) {
  for (const call of calls) {
    const answer = await inTime('the end of a stream', call.ended, 120_000);
    assert.equal(answer.failed, undefined);
    const { text, done } = readAnswer(answer);
    assert.ok(done, 'it has its [DONE]');
    assert.equal(text, expectedAnswer(call.body, limits).choices[0].text);
  }
}

scenario('requests and streams go on over several restarts', async (s) => {
  const sim = { decodeMs: 20, ...LONG };
  const fleet = await Fleet.start(s, { sim, config: { threads: 2, shutdown_grace: '1ms' } });
  const quick = await Sim.start(s, { model: 'short', decodeMs: 0 });
  await fleet.router.reconfigure({ models: [...fleet.router.config.models, { name: 'short', workers: [quick.worker()] }] });
  await fleet.router.logged('config_reloaded');
  await fleet.router.allUp('short');
  const line = new Generations(s, fleet.router);
  const begun = streams(fleet.router, 10, 'begun before');
  await until('they run', () => begun.every(({ events }) => events > 1));
  const kept = [keepAlive(fleet.router), keepAlive(fleet.router)];
  const some = load(s, { address: fleet.router.address }, { width: 3, model: 'short' });
  await some.next(20);
  for (const threads of [2, 3, 1]) {
    await fleet.router.reconfigure({ threads }); // more than there are sockets, and fewer
    const before = kept.map(({ served }) => served());
    await line.restart();
    begun.push(...streams(fleet.router, 3, `begun with ${threads}`));
    await some.next(20);
    await until('kept connections go on', () => kept.every(({ served }, i) => served() > before[i] + 5));
  }
  const { served } = await some.stop();
  assert.ok(served >= 80);
  await Promise.all(kept.map((one) => one.stop()));
  await checkStreams(begun, LONG);
  for (const pid of line.pids.slice(0, -1)) await line.gone(pid);
  assert.deepEqual(line.lines('shutdown_grace_over'), [], 'no stream was cut');
});

scenario('a connection without a request, and one between two, are not closed', async (s) => {
  const { router } = await Fleet.start(s, { counts: { aggregated: 1 } });
  const line = new Generations(s, router);
  const whole = wire('GET', '/v1/models');
  const [fresh, kept] = await Promise.all([0, 1].map(() => RawConnection.open(router.address)));
  assert.equal((await inTime('an answer', kept.write(whole).response())).status, 200);
  const [first] = line.pids;
  await line.restart();
  const log = router.logLines();
  const since = log.slice(log.findLastIndex(({ event }) => event === 'restart_begun'));
  const at = (event, more = () => true) => since.findIndex((one) => one.event === event && more(one));
  const checked = at('worker_changed', ({ to }) => to === 'ready');
  assert.ok(checked > 0 && checked < at('handed_over') && checked < at('serving'), 'its worker was asked before it serves');
  for (const connection of [fresh, kept]) {
    const answer = await inTime('an answer', connection.write(whole).response());
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.connection, 'close');
    await inTime('it is closed', connection.closed());
  }
  await line.gone(first);
  const late = await inTime('an answer', (await RawConnection.open(router.address)).write(whole).response());
  assert.notEqual(late.headers.connection, 'close');
});

scenario('signals to one of two do not touch the other', async (s) => {
  const sim = { decodeMs: 20, minOutput: 100_000, maxOutput: 100_000 };
  const { router } = await Fleet.start(s, { sim, counts: { aggregated: 1 }, config: { shutdown_grace: '1ms' } });
  const line = new Generations(s, router);
  const [stream] = streams(router, 1, 'endless');
  await until('it runs', () => stream.events > 1);
  const [first] = line.pids;
  await line.restart();
  line.signal('SIGUSR2', first);
  const [refused] = await router.logged('restart_refused');
  assert.match(refused.reason, /handed over/);
  line.signal('SIGTERM');
  await line.gone(line.current);
  const seen = stream.events;
  await until('the stream goes on', () => stream.events > seen + 5);
  line.signal('SIGTERM', first);
  const answer = readAnswer(await inTime('the end of the stream', stream.ended));
  assert.equal(answer.error?.code, 'shutting_down');
  await line.gone(first);
});

// Each is put where the program stands, as a new version would be.
const PROGRAMS = {
  'ends at once': ['#!/bin/sh\nexit 7\n', 'ended', /before it was ready/],
  'hangs': ['#!/bin/sh\nexec sleep 600\n', 'timeout', /restart_timeout/],
  'is no program': ['nonsense', 'start', /could not be started/],
};

scenario('a successor that fails changes nothing', async (s) => {
  const program = s.file('baton');
  await symlink(BATON, program);
  const sim = await Sim.start(s);
  const config = { restart_timeout: '3s', models: [{ name: 'demo', workers: [sim.worker()] }] };
  const router = await Router.start(s, config, {}, undefined, undefined, program);
  await router.allUp();
  const line = new Generations(s, router);
  const works = async () => {
    checkExact(await ask(router, chat('still here')), chat('still here'));
    assert.equal((await router.readiness()).ready, true);
  };
  const replace = async (make) => {
    await rm(program);
    await make();
  };
  for (const [what, [text, kind, reason]] of Object.entries(PROGRAMS)) {
    await s.step(what, async () => {
      await replace(async () => {
        await writeFile(program, text);
        await chmod(program, 0o755);
      });
      const told = await line.failToRestart();
      assert.equal(told.kind, kind);
      assert.match(told.reason, reason);
      if (what === 'ends at once') assert.equal(told.ended_with, 'exit code 7');
      assert.equal(await router.metric('baton_restart_failures_total', { reason: kind }), 1);
      await works();
    });
  }
  await s.step('a second signal meanwhile is refused', async () => {
    const script = s.file('slow');
    await writeFile(script, '#!/bin/sh\nexec sleep 600\n');
    await chmod(script, 0o755);
    await replace(() => symlink(script, program));
    const failures = line.lines('restart_failed').length;
    line.signal('SIGUSR2');
    await until('it has begun', () => line.lines('restart_begun').length > failures);
    line.signal('SIGUSR2');
    const [refused] = await router.logged('restart_refused');
    assert.match(refused.reason, /under way/);
    await until('the first is given up', () => line.lines('restart_failed').length > failures);
    await works();
  });
  await replace(() => symlink(BATON, program));
  await s.step('a broken configuration', async () => {
    await router.reconfigure({ threads: 'many' });
    const told = await line.failToRestart();
    assert.equal(told.kind, 'ended');
    assert.equal(told.ended_with, 'exit code 2');
    await works();
    await router.reconfigure({ threads: 2 });
  });
});

scenario('what is known of the KV caches is handed over', async (s) => {
  const flags = { blockSize: 4, blocks: 512, decodeMs: 0, minOutput: 2, maxOutput: 4, kvBuffer: 6 };
  const sim = await Sim.telling(s, flags);
  const worker = { ...sim.worker(), kv_events: sim.feed, kv_replay: sim.replay };
  const kv_index = { prediction_ttl: '0s', snapshot: s.file('kv.snapshot') };
  const tokenizer = await writeTinyModel(s);
  const router = await Router.start(s, { kv_index, models: [{ name: 'demo', tokenizer, workers: [worker] }] });
  await router.allUp();
  const line = new Generations(s, router);
  const audit = new Audit(router, () => [{ sim, model: 'demo', blockSize: 4 }]);
  const compute = async (number) => {
    const prompt = [number % 200, Math.floor(number / 200), ...Array.from({ length: 11 }, (_, i) => i)];
    const answer = await ask(router, completion(prompt, { max_tokens: 2 }));
    assert.equal(answer.status, 200, answer.raw);
  };
  let number = 0;
  await untilCache(router, sim, 'it is heard', async ({ source }) => {
    if (source !== 'events') await compute(number++);
    return source === 'events';
  });
  for (let i = 0; i < 30; ++i) await compute(number++);
  const { prompts } = await audit.agrees();
  assert.ok(prompts >= 30);
  const [first] = line.pids;
  await line.restart();
  // At once, and far more than the engine could repeat.
  assert.equal((await audit.agrees()).prompts, prompts);
  await compute(number++);
  assert.equal((await audit.agrees()).prompts, prompts + 1);
  await line.gone(first);
  await line.restart();
  assert.equal((await audit.agrees()).prompts, prompts + 1, 'the one that had gone wrote nothing over it');
});

scenario('another address in the configuration is another socket', async (s) => {
  const sim = await Sim.start(s);
  const router = await Router.start(s, { models: [{ name: 'demo', workers: [sim.worker()] }] });
  await router.allUp();
  const line = new Generations(s, router);
  const [first] = line.pids;
  await router.reconfigure({ listen: '127.0.0.2:0' });
  await line.restart();
  const { address } = line.lines('serving').at(-1);
  assert.match(address, /^127\.0\.0\.2:/);
  checkExact(await ask({ address }, chat('there')), chat('there'));
  await line.gone(first);
  await assert.rejects(RawConnection.open(router.address), /ECONNREFUSED/);
  const unused = line.lines('socket_unused');
  assert.ok(unused.length > 0 && unused.every(({ address: one }) => one === router.address), JSON.stringify(unused));
});

scenario('a worker that does not answer yet holds a restart back, unless no worker could serve anyway', async (s) => {
  const { router, sims } = await Fleet.start(s, { counts: { aggregated: 1 }, config: { restart_timeout: '3s' } });
  const line = new Generations(s, router);
  const [sim] = sims;
  sim.process.signal('SIGSTOP');
  s.after(() => sim.process.signal('SIGCONT')); // a paused process cannot be asked to end
  const told = await line.failToRestart();
  assert.equal(told.kind, 'timeout');
  sim.process.signal('SIGCONT');
  checkExact(await ask(router, chat('as before')), chat('as before'));
  await sim.kill();
  await router.untilState(sim, 'unreachable');
  await line.restart();
  assert.equal((await router.readiness()).ready, false);
});

/** The server's descriptor; the caller closes it here after it has started a process with it. */
async function listening() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, address: `127.0.0.1:${server.address().port}`, descriptor: server._handle.fd };
}

// As systemd does it: it listens, and says so to the process that it starts.
const LAUNCHER = 'export LISTEN_PID=$$; exec "$0" "$@"';
const NOTIFIED = `
import socket, sys
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(manager.recv(4096).decode().replace("\\n", " "), flush=True)
`;

scenario('a service manager hands down sockets, and is told what happens', async (s) => {
  const sim = await Sim.start(s);
  const path = s.file('notify');
  const manager = s.adopt(new Process('service manager', ['-c', NOTIFIED, path], {}, 'python3'));
  manager.expectedExit = undefined; // by the signal
  await until('it listens', () => manager.stdout.includes('bound'));
  const [clients, admin, other] = await Promise.all([listening(), listening(), listening()]);
  const file = s.file('config');
  await writeFile(file, JSON.stringify({
    listen: clients.address, admin: admin.address, threads: 3, log: { format: 'json' },
    models: [{ name: 'demo', workers: [sim.worker()] }],
  }));
  const all = [other, admin, clients];
  const env = { LISTEN_FDS: '3', LISTEN_FDNAMES: 'spare:baton.socket:listen', NOTIFY_SOCKET: path };
  const args = ['-c', LAUNCHER, BATON, 'serve', '--config', file];
  const router = new Router();
  router.process = s.adopt(new Process('router', args, env, 'sh', { handed: all.map(({ descriptor }) => descriptor) }));
  for (const { server } of all) server.close();
  Object.assign(router, { address: clients.address, admin: admin.address });
  const line = new Generations(s, router);
  await router.logged('serving');
  await until('it is told', () => manager.stdout.includes('READY=1'));
  assert.deepEqual(line.lines('socket_unused').map(({ name, address }) => ({ name, address })), [{ name: 'spare', address: other.address }]);
  await assert.rejects(RawConnection.open(other.address), /ECONNREFUSED/);
  await router.allUp();
  const served = () => Promise.all(Array.from({ length: 12 }, async (_, i) => checkExact(await ask(router, chat(`${i}`)), chat(`${i}`))));
  await served();
  const next = await line.restart();
  await served();
  await until('it is told of the next one', () => manager.stdout.includes(`MAINPID=${next} READY=1`));
  assert.match(manager.stdout, /RELOADING=1 MONOTONIC_USEC=\d+/);
  line.signal('SIGTERM');
  await until('it is told of the end', () => manager.stdout.includes('STOPPING=1'));
});
