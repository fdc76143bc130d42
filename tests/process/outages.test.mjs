// SPDX-License-Identifier: Apache-2.0
// Four outages that once lasted until the router was restarted, by each source of workers: decode workers that are
// replaced while prefill stays, a decode worker that is replaced before prefill comes, and restarts under bursts of
// requests without and with canaries. Engines are ended by SIGKILL. Once a replacement is ready, everything is served,
// by a prefill and a decode worker, without help.
//
// How long the first answer took after the replacement was ready is told (it should be below a second); only a bound
// that no busy machine misses is demanded.
import assert from 'node:assert/strict';

import { ask, chat, checkExact, checkRefused, servedBy, streamed } from './support/ask.mjs';
import { Sim } from './support/fleet.mjs';
import { load } from './support/load.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { SOURCES } from './support/sources.mjs';

// Another engine with each source: all must recover, and hand off in ways that have little in common.
const ENGINES = { file: 'vllm', admin: 'trtllm', etcd: 'sglang' };
const RECOVERED_WITHIN = 10_000;
const CANARY = { idle: '1s', timeout: '1s', failures: 2 };
// What a client may be told while workers die.
const TOLD = ['engine_failed', 'engine_overloaded', 'engine_protocol', 'engine_timeout', 'engine_unreachable',
  'no_eligible_worker', 'no_workers', 'poison_request', 'prefill_unavailable', 'stream_broken'];

const body = (number) => chat(`Is anybody there, number ${number}?`, number % 2 ? streamed : {});
const byBoth = (answer) => answer.status === 200 && servedBy(answer).prefill && servedBy(answer).decode;
const prefillLife = (router) => router.logLines().map(({ event }) => event).filter((event) => /^prefill_/.test(event));
const prefillState = (router) => router.metric('baton_prefill_state', { model: 'demo' });
const transitions = async (router) => [
  await router.metric('baton_prefill_transitions_total', { model: 'demo', to: 'active' }),
  await router.metric('baton_prefill_transitions_total', { model: 'demo', to: 'unavailable' }),
];

/** What the log says has become of a worker, in order. */
const lifeOf = (router, { address }) =>
  router.logLines('worker_changed').filter(({ worker }) => worker === address).map(({ to }) => to);

/** How many workers of a role are in a state; 0 where the metric has no such sample. */
async function count(router, role, state) {
  const samples = (await router.metrics()).filter(({ name }) => name === 'baton_workers');
  return samples.filter(({ labels }) => labels.role === role && labels.state === state).reduce((sum, { value }) => sum + value, 0);
}

const untilReady = (router, role, wanted) =>
  until(`${wanted} ${role} workers are ready`, async () => (await count(router, role, 'ready')) === wanted);

/** A fleet of one source: engines join it when they are ready. */
class Ward {
  constructor(s, name, source) {
    this.s = s;
    this.engine = ENGINES[name];
    this.source = source;
    this.router = source.router;
  }

  static async open(s, name, options) {
    return new Ward(s, name, await SOURCES[name].start(s, options));
  }

  /** New engines, all at once. Their time of birth is when they were ready, before any router knew of them. */
  admit(...roles) {
    return Promise.all(
      roles.map(async (role) => {
        const sim = await this.start(role);
        await this.source.join(sim);
        return sim;
      }),
    );
  }

  /** Where an SGLang prefill worker meets others is its configuration, as its address is. */
  async start(role, { port = 0, bootstrapPort = 0 } = {}) {
    const meets = this.engine === 'sglang' && role === 'prefill';
    const bootstrapReadyFile = this.s.file(`bootstrap-${this.s.processes.length}`);
    const more = meets ? { bootstrapPort, bootstrapReadyFile } : {};
    const sim = await Sim.start(this.s, { engine: this.engine, role, port, ...more });
    sim.born = Date.now();
    if (meets) sim.bootstrapPort = (await sim.process.address(bootstrapReadyFile)).split(':')[1];
    return sim;
  }

  /** The next process at the same address, of which no source is told: nothing that it says has changed. */
  async restart({ role, address, bootstrapPort }) {
    const port = address.split(':')[1];
    return Sim.again(this.s, () => this.start(role, { port, bootstrapPort }));
  }

  /** Asks on and on while `cure` brings engines; the first good answer must come soon after the first of them is ready. */
  async recovers(what, cure, good = byBoth) {
    let number = 0;
    let at;
    const recovered = until(`${what}: a request is served`, async () => {
      const one = body(number++);
      const answer = await ask(this.router, one);
      if (!good(answer)) return false;
      at = Date.now();
      checkExact(answer, one);
      return true;
    });
    const [sims] = await Promise.all([cure(), recovered]);
    const took = at - Math.min(...sims.map(({ born }) => born));
    this.s.context.diagnostic(`${what}: first answer ${took} ms after an engine was ready (${number} requests)`);
    assert.ok(took < RECOVERED_WITHIN, `${what}: ${took} ms`);
    return sims;
  }

  /** A hundred requests, of which a hundred are served, each by one of these prefill and one of these decode workers. */
  async servesHundred(sims) {
    const addresses = sims.map(({ address }) => address);
    const failures = [];
    let sent = 0;
    const sender = async () => {
      while (sent < 100) {
        const one = body(sent++);
        try {
          const answer = await ask(this.router, one);
          checkExact(answer, one);
          const { prefill, decode } = servedBy(answer);
          assert.ok(addresses.includes(prefill) && addresses.includes(decode), `served by ${prefill} and ${decode}`);
        } catch (error) {
          failures.push(error.message);
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, sender));
    assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${sent} requests failed`);
    await until('nothing is in flight', async () => (await this.router.inFlight()) === 0);
  }
}

/** Kills workers in the middle of bursts and starts others at their addresses, some and all, one role and both. */
async function survivesBursts(ward) {
  const { router, s } = ward;
  let [p0, p1, d0, d1] = await ward.admit('prefill', 'prefill', 'decode', 'decode');
  await untilReady(router, 'prefill', 2);
  await untilReady(router, 'decode', 2);
  const rounds = [
    ['one decode worker', () => [d0]],
    ['both decode workers', () => [d0, d1]],
    ['both prefill workers', () => [p0, p1]],
    ['one of each', () => [p0, d1]],
    ['all of them', () => [p0, p1, d0, d1]],
  ];
  for (const [what, victims] of rounds) {
    await s.step(`${what} restart under a burst`, async () => {
      const running = load(s, router, { told: TOLD });
      await running.next(20);
      const dead = victims();
      await Promise.all(dead.map((sim) => sim.kill()));
      await running.next(10);
      const isBack = (worker) => dead.some(({ address }) => address === worker);
      const back = await ward.recovers(
        what,
        () => Promise.all(dead.map((sim) => ward.restart(sim))),
        (answer) => byBoth(answer) && Object.values(servedBy(answer)).some(isBack),
      );
      await running.next(20);
      const { sent, served, refused } = await running.stop();
      s.context.diagnostic(`${what}: of ${sent} requests in the burst, ${served} served, ${refused} told why not`);
      const next = (sim) => back.find(({ address }) => address === sim.address) ?? sim;
      [p0, p1, d0, d1] = [p0, p1, d0, d1].map(next);
      await ward.servesHundred([p0, p1, d0, d1]);
      // A worker that was ejected in the burst comes back, too.
      await router.allUp();
      await ward.servesHundred([p0, p1, d0, d1]);
      for (const sim of back) assert.ok((await sim.state()).requests > 0, `${sim.process.name} serves again`);
    });
    if (s.failed) return undefined; // the next round would only tell the same
  }
  const [active, unavailable] = await transitions(router);
  assert.equal(active, unavailable + 1, 'each loss of prefill was followed by its return');
  assert.ok(unavailable >= 1, 'both prefill workers were lost');
  assert.equal(await prefillState(router), 1);
  assert.equal(prefillLife(router).at(-1), 'prefill_reactivated');
  for (const sim of [p0, p1, d0, d1]) assert.ok(lifeOf(router, sim).includes('unreachable'), lifeOf(router, sim).join());
  return [p0, p1, d0, d1];
}

for (const name of Object.keys(SOURCES)) {
  scenario(`${name}: both decode workers are replaced while prefill stays`, async (s) => {
    const ward = await Ward.open(s, name);
    const { router, source } = ward;
    const [prefill, lost, killed] = await ward.admit('prefill', 'decode', 'decode');
    await untilReady(router, 'prefill', 1);
    await untilReady(router, 'decode', 2);
    await ward.servesHundred([prefill, lost, killed]);
    assert.deepEqual(prefillLife(router), ['prefill_activated']);

    await Promise.all([source.lose(lost), killed.kill()]);
    await until('the outage is noticed', async () => (await ask(router, body(0))).status >= 500);
    await until('it is told', async () => !(await router.readiness()).ready);
    const replacements = await ward.recovers('decode workers', async () => {
      if (name !== 'etcd') await source.leave(lost); // its lease runs out
      await source.leave(killed);
      return ward.admit('decode', 'decode');
    });
    await ward.servesHundred([prefill, ...replacements]);
    await untilReady(router, 'decode', 2);
    await ward.servesHundred([prefill, ...replacements]);

    assert.deepEqual(prefillLife(router), ['prefill_activated'], 'prefill was there all the time');
    assert.equal(await prefillState(router), 1);
    assert.deepEqual(await transitions(router), [1, 0]);
    for (const sim of [lost, killed]) {
      const life = await until(`${sim.process.name} is forgotten`, () => {
        const sofar = lifeOf(router, sim);
        return sofar.at(-1) === 'gone' && sofar;
      });
      assert.deepEqual(life.slice(0, 2), ['joined', 'ready']);
    }
    for (const sim of replacements) {
      assert.deepEqual(lifeOf(router, sim), ['joined', 'ready']);
      assert.ok((await sim.state()).requests > 0, 'both replacements serve');
    }
    assert.equal(await router.metric('baton_workers'), 3);
  });

  scenario(`${name}: the decode worker is replaced before prefill comes`, async (s) => {
    const ward = await Ward.open(s, name, { model: { disaggregation: 'required' } });
    const { router, source } = ward;
    const refused = async () => checkRefused(await ask(router, body(1)), 503, 'prefill_unavailable');
    const [first] = await ward.admit('decode');
    await untilReady(router, 'decode', 1);
    await refused();
    await first.kill();
    await source.leave(first);
    const [decode] = await ward.admit('decode');
    await untilReady(router, 'decode', 1);
    await refused();
    assert.deepEqual(prefillLife(router), []);
    assert.match((await router.readiness()).models.demo.reason, /there is no prefill worker/);

    const [prefill] = await ward.recovers('first prefill worker', () => ward.admit('prefill'));
    await ward.servesHundred([prefill, decode]);
    assert.deepEqual(prefillLife(router), ['prefill_activated']);
    assert.equal(await prefillState(router), 1);
    assert.deepEqual(await transitions(router), [1, 0]);

    await source.lose(prefill);
    await until('its loss is noticed', async () => (await ask(router, body(2))).error?.code === 'prefill_unavailable');
    assert.deepEqual(prefillLife(router), ['prefill_activated', 'prefill_unavailable']);
    assert.equal(await prefillState(router), 2);
    const [next] = await ward.recovers('next prefill worker', () => ward.admit('prefill'));
    await ward.servesHundred([next, decode]);
    assert.deepEqual(prefillLife(router), ['prefill_activated', 'prefill_unavailable', 'prefill_reactivated']);
    assert.equal(await prefillState(router), 1);
    assert.deepEqual(await transitions(router), [2, 1]);
    assert.equal((await first.process.exited).signal, 'SIGKILL');
  });

  scenario(`${name}: restarts under bursts, without canaries`, async (s) => {
    await survivesBursts(await Ward.open(s, name));
  });

  scenario(`${name}: restarts under bursts, with canaries`, async (s) => {
    const ward = await Ward.open(s, name, { config: { canary: CANARY } });
    const { router } = ward;
    const sims = await survivesBursts(ward);
    if (s.failed) return;
    await s.step('one that hangs is found by canaries, and returns', async () => {
      const [, , stuck] = sims;
      s.after(() => stuck.process.signal('SIGCONT')); // a paused process cannot be asked to end
      stuck.process.signal('SIGSTOP');
      const found = () => lifeOf(router, stuck).at(-1);
      await until('it is ejected', () => found() === 'ejected');
      assert.match(router.logLines('worker_changed').findLast(({ to }) => to === 'ejected').reason, /canaries failed/);
      await ward.servesHundred(sims);
      stuck.process.signal('SIGCONT');
      await until('it is back', () => found() === 'ready');
      await ward.servesHundred(sims);
      assert.equal(await prefillState(router), 1);
    });
  });
}
