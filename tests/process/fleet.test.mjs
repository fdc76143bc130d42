// SPDX-License-Identifier: Apache-2.0
// A fleet that changes while it serves: two deployments side by side, workers that leave in the middle of a stream,
// files that cannot be read, and engines that are not what was said of them.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';

import { ask, chat, checkExact, servedBy } from './support/ask.mjs';
import { Call, readStream } from './support/call.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { load } from './support/load.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { MountedFile } from './support/sources.mjs';
import { expectedAnswer } from './support/text.mjs';

const modelOf = (workers, more = {}) => ({ models: [{ name: 'demo', workers, ...more }] });

scenario('blue and green serve side by side, and blue leaves under load', async (s) => {
  const start = (namespace, engine, flags, ...roles) =>
    Promise.all(roles.map(async (role) => Object.assign(await Sim.start(s, { engine, role, ...flags }), { namespace })));
  // They could not hand over to each other: another engine, block size and number of ranks.
  const [blue, green] = await Promise.all([
    start('blue', 'sglang', {}, 'prefill', 'decode'),
    start('green', 'vllm', { blockSize: 32, dpSize: 2 }, 'prefill', 'decode', 'decode', 'decode'),
  ]);
  const worker = (sim) => ({ ...sim.worker(), namespace: sim.namespace, ...(sim.engine === 'vllm' ? { data_parallel_size: 2 } : {}) });
  const router = await Router.start(s, modelOf([...blue, ...green].map(worker)));
  await router.allUp();
  const colours = new Map([...blue, ...green].map(({ address, namespace }) => [address, namespace]));
  const running = load(s, router);
  /** Requests by colour; none was served by two of different ones. */
  const shares = async (count) => {
    const sums = { blue: 0, green: 0 };
    for (const [pair, requests] of await running.next(count)) {
      const [prefill, decode] = pair.split(' ').map((address) => colours.get(address));
      assert.equal(prefill, decode, `${pair}: handed over within one namespace`);
      sums[decode] += requests;
    }
    return sums;
  };

  await s.step('each gets its share by the number of workers that answer', async () => {
    const sums = await shares(400);
    const share = sums.green / (sums.green + sums.blue);
    assert.ok(share > 0.6 && share < 0.9, `green has three of four: ${JSON.stringify(sums)}`);
    const { namespaces } = (await router.readiness()).models.demo;
    assert.deepEqual(Object.keys(namespaces).sort(), ['blue', 'green']);
    for (const one of Object.values(namespaces)) assert.equal(one.ready, true);
  });
  await s.step('blue is drained, prefill first, and gets nothing more', async () => {
    for (const sim of blue) {
      const { status, text } = await request(router.admin, { path: `/workers/${sim.address}/drain` });
      assert.equal(status, 200, text);
    }
    await until('blue has nothing to do', async () => (await router.metric('baton_worker_in_flight', { worker: blue[1].address })) === 0);
    assert.equal((await shares(100)).blue, 0);
  });
  await s.step('blue is removed and stopped', async () => {
    await router.reconfigure(modelOf(green.map(worker)));
    for (const sim of blue) await router.untilGone(sim);
    await Promise.all(blue.map((sim) => sim.kill()));
    assert.equal((await shares(100)).blue, 0);
    assert.deepEqual(Object.keys((await router.readiness()).models.demo.namespaces), ['green']);
  });
  await s.step('no request failed', () => running.stop());
});

scenario('a worker that is removed from a mounted file ends its streams normally', async (s) => {
  const limits = { minOutput: 500, maxOutput: 500 };
  const sims = await Promise.all(['prefill', 'decode', 'decode'].map((role) => Sim.start(s, { role, decodeMs: 10, ...limits })));
  const [prefill, leaving, staying] = sims;
  await mkdir(s.file('mount'));
  const mount = new MountedFile(s.file('mount'));
  const router = await Router.start(s, modelOf([prefill, leaving].map((sim) => sim.worker())), {}, mount);
  await router.allUp();
  const body = chat('Let me finish', { stream: true });
  const running = new Call(router.address, body);
  await until('the stream runs', () => running.events > 2);

  await router.reconfigure(modelOf([prefill, staying].map((sim) => sim.worker())));
  await until('it leaves', async () => (await router.workerAt(leaving))?.leaving);
  await router.untilState(staying, 'ready');
  const answer = await ask(router, chat('Who is next?', { max_tokens: 2 }));
  assert.deepEqual(servedBy(answer), { prefill: prefill.address, decode: staying.address });
  assert.ok(!running.over, 'the stream still runs');
  const { text, complete } = await inTime('the end of the stream', running.ended);
  const { choices, errors, done } = readStream(text);
  assert.ok(complete && done === 1 && errors.length === 0, text.slice(-300));
  assert.equal(choices[0].text, expectedAnswer(body, limits).choices[0].text);
  await router.untilGone(leaving);

  // The link is swapped again and again: not only the first time.
  await router.reconfigure(modelOf([prefill, leaving, staying].map((sim) => sim.worker())));
  await router.untilState(leaving, 'ready');
  await until('both reloads are logged', () => router.logLines('config_reloaded').length === 2);
});

scenario('a file that cannot be used changes nothing, and is told of until there is a good one', async (s) => {
  const fleet = await Fleet.start(s);
  const { router } = fleet;
  await router.allUp();
  const other = await Sim.start(s, { role: 'decode' });
  const good = router.config;
  const file = async () => (await router.readiness()).sources.file;
  const serves = async () => {
    const body = chat('Are you still there?');
    const answer = await ask(router, body);
    checkExact(answer, body);
    return servedBy(answer);
  };
  const before = await serves();
  const cases = [
    ['no YAML', '{"models": [{"name": "demo"', /:1: /],
    ['an unknown key', JSON.stringify({ ...good, modles: [] }, null, 1), /unknown key 'modles'; did you mean models\?/],
    ['a wrong worker', JSON.stringify({ ...good, ...modelOf([{ url: 'ftp://x', role: 'decod' }]) }, null, 1), /models\[0\]\.workers\[0\]\.url/],
    ['nothing', '', /baton|router/],
  ];
  let refused = 0;
  for (const [what, text, problem] of cases) {
    await s.step(what, async () => {
      await router.configFile.write(text);
      await until('it is refused', async () => (await router.metric('baton_config_reloads_total', { outcome: 'refused' })) > refused);
      refused = await router.metric('baton_config_reloads_total', { outcome: 'refused' });
      const { well, detail } = await file();
      assert.equal(well, false);
      assert.match(detail, /what was read before holds/);
      assert.match(detail, problem);
      assert.equal(await router.metric('baton_config_stale'), 1);
      const line = await until('it is logged', () => router.logLines('config_refused').at(refused - 1));
      assert.equal(line.level, 'error');
      assert.ok(line.problem.includes(router.configFile.path), `it names the file: ${line.problem}`);
      assert.ok((await router.readiness()).ready, 'it serves, and says so');
      assert.deepEqual(await serves(), before);
    });
  }
  await s.step('SIGHUP reads it again, and says it again', async () => {
    router.process.signal('SIGHUP');
    await until('it is refused again', async () => (await router.metric('baton_config_reloads_total', { outcome: 'refused' })) > refused);
  });
  await s.step('a good one is taken', async () => {
    await router.reconfigure(modelOf([...fleet.of('prefill'), other].map((sim) => sim.worker())));
    await until('it is taken', async () => (await file()).well);
    assert.equal(await router.metric('baton_config_stale'), 0);
    assert.equal(await router.metric('baton_config_reloads_total', { outcome: 'taken' }), 1);
    await router.untilState(other, 'ready');
    await router.untilGone(fleet.of('decode')[0]);
    assert.equal((await serves()).decode, other.address);
  });
});

scenario('an engine that is not what was said of it gets no requests until that is corrected', async (s) => {
  const [prefill, decode, engine, role, model] = await Promise.all([
    Sim.start(s, { engine: 'sglang', role: 'prefill' }),
    Sim.start(s, { engine: 'sglang', role: 'decode' }),
    Sim.start(s, { engine: 'vllm', role: 'decode' }),
    Sim.start(s, { engine: 'sglang', role: 'prefill' }),
    Sim.start(s, { engine: 'sglang', role: 'decode', model: 'other' }),
  ]);
  const right = [prefill, decode].map((sim) => sim.worker());
  const wrong = [
    [engine, { engine: 'sglang' }, /^engine is sglang, but the server is vllm; correct the engine/],
    [role, { role: 'decode' }, /^role is decode, but the engine was started with --disaggregation-mode prefill; correct the role/],
    [model, {}, /^the model is 'demo', but the server serves 'other'; /],
  ];
  const router = await Router.start(s, modelOf([...right, ...wrong.map(([sim, more]) => ({ ...sim.worker(), ...more }))]));
  for (const sim of [prefill, decode]) await router.untilState(sim, 'ready');
  await s.step('it is told precisely', async () => {
    for (const [sim, , reason] of wrong) {
      assert.match((await router.untilState(sim, 'misconfigured')).reason, reason);
      const line = await until('it is logged', () =>
        router.logLines('worker_changed').find(({ worker, to }) => worker === sim.address && to === 'misconfigured'));
      assert.equal(line.level, 'warning');
      assert.match(line.reason, reason);
    }
    assert.equal(await router.metric('baton_workers', { state: 'misconfigured' }), 3);
    assert.deepEqual((await router.readiness()).models.demo.namespaces.default.roles.decode.states, { misconfigured: 3, ready: 1 });
  });
  await s.step('the others serve', async () => {
    for (let i = 0; i < 20; ++i) {
      const body = chat(`Who serves number ${i}?`);
      const answer = await ask(router, body);
      checkExact(answer, body);
      assert.deepEqual(servedBy(answer), { prefill: prefill.address, decode: decode.address });
    }
    for (const [sim] of wrong) assert.equal((await sim.state()).requests, 0, `${sim.process.name} was asked nothing`);
  });
  await s.step('corrected, they serve', async () => {
    const mended = { ...engine.worker(), namespace: 'other' }; // one namespace runs one engine
    await router.reconfigure({
      models: [
        { name: 'demo', workers: [...right, role.worker(), mended] },
        { name: 'other', disaggregation: 'off', workers: [{ ...model.worker(), role: 'decode' }] },
      ],
    });
    for (const [sim] of wrong) await router.untilState(sim, 'ready');
    await until('the one with the right role serves', async () => {
      assert.equal((await ask(router, chat('Who prefills?'))).status, 200);
      return (await role.state()).requests > 0;
    });
    await until('the one with the right engine serves', async () => {
      assert.equal((await ask(router, chat('Who decodes?'))).status, 200);
      return (await engine.state()).requests > 0;
    });
  });
});
