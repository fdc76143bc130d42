// SPDX-License-Identifier: Apache-2.0
// What only SGLang has: names of requests that abort others, refusals inside a stream, ranks of attention, and the
// log-probabilities of a prompt that only the prefill worker knows.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { CHAT, ask, chat, completion } from './support/ask.mjs';
import { Fleet, Router, Sim } from './support/fleet.mjs';
import { RawConnection, eventsOf, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const NAME = /^[0-9a-f]{32}$/;
const LONG = { minOutput: 100_000, maxOutput: 100_000 };
// Longer than any test: without an abort, a worker goes on.
const DEAF = { disconnectMs: 600_000 };

const roles = { 'one worker': { aggregated: 1 }, 'two workers': { prefill: 1, decode: 1 } };
const bodiesOf = async (sim) => (await sim.legs()).map(({ body }) => (typeof body === 'string' ? JSON.parse(body) : body));

describe('SGLang', { concurrency: 3 }, () => {
  for (const [name, counts] of Object.entries(roles)) {
    scenario(`${name}: a client that leaves is told of, not only hung up on`, async (s) => {
      const fleet = await Fleet.start(s, { engine: 'sglang', counts, sim: { decodeMs: 5, ...LONG, ...DEAF } });
      const worker = fleet.of(counts.decode ? 'decode' : 'aggregated')[0];
      for (const stream of [true, false]) {
        const { aborted } = await worker.state();
        const client = await RawConnection.open(fleet.router.address);
        const body = JSON.stringify(chat('Tell me everything.', { stream, max_tokens: 50_000 }));
        client.write(wire('POST', CHAT, { 'Content-Type': 'application/json' }, body));
        if (stream) assert.equal((await inTime('a head', client.head())).status, 200);
        await until('it runs', async () => (await worker.state()).running === 1);
        client.destroy();
        await until('the worker is free', async () => (await worker.state()).running === 0);
        assert.equal((await worker.state()).aborted, aborted + 1);
      }
    });

    scenario(`${name}: legs have names that Baton drew`, async (s) => {
      const fleet = await Fleet.start(s, { engine: 'sglang', counts });
      for (let i = 0; i < 3; ++i) assert.equal((await ask(fleet.router, chat('Hello', { rid: 'a', max_tokens: 3 }))).status, 200);
      assert.equal((await ask(fleet.router, chat('Hello', { rid: 'a', max_tokens: 3, n: 2 }))).status, 200);
      const names = (await Promise.all(fleet.sims.map(bodiesOf))).flat().map(({ rid }) => rid);
      assert.ok(names.length >= 4);
      for (const rid of names) assert.match(rid, NAME);
      assert.equal(new Set(names).size, names.length, 'none is used twice');
    });

    scenario(`${name}: what the scheduler refuses inside a stream is the client's fault`, async (s) => {
      const fleet = await Fleet.start(s, { engine: 'sglang', counts: Object.fromEntries(Object.keys(counts).map((role) => [role, 2])) });
      for (const stream of [true, false]) {
        for (let i = 0; i < 8; ++i) {
          const answer = await ask(fleet.router, chat('Hello', { regex: '(open', stream }));
          assert.equal(answer.status, 400, answer.raw);
          assert.match(answer.raw, /Failed to compile the grammar/);
          assert.ok(!answer.raw.includes('engine_rejected'), "the engine's own words");
        }
      }
      assert.equal((await fleet.router.metrics()).filter(({ name }) => name === 'baton_retries_total').reduce((sum, { value }) => sum + value, 0), 0);
      for (const sim of fleet.sims) assert.equal((await fleet.router.workerAt(sim)).state, 'ready');
      assert.equal((await ask(fleet.router, chat('Hello'))).status, 200);
    });
  }

  scenario('ranks of attention are ranks', async (s) => {
    const sim = await Sim.start(s, { engine: 'sglang', dpSize: 2, enableDpAttention: true });
    const router = await Router.start(s, { models: [{ name: 'demo', workers: [{ ...sim.worker(), data_parallel_size: 2 }] }] });
    await router.untilState(sim, 'ready');
    for (let i = 0; i < 4; ++i) assert.equal((await ask(router, chat(`Hello ${i}`))).status, 200);
    const { data_parallel_size: told } = (await router.workerAt(sim)).engine_info ?? {};
    assert.ok(told === undefined || told === 2);
    assert.deepEqual([...new Set((await sim.legs()).map(({ rank }) => rank))].sort(), [0, 1]);
  });

  scenario('what the operator strips reaches no worker', async (s) => {
    const config = { strip_client_fields: ['priority', 'extra_key'], strip_client_headers: ['x-sglext-*'] };
    const fleet = await Fleet.start(s, { engine: 'sglang', counts: { aggregated: 1 }, config });
    const headers = { 'x-sglext-ids-framed': '1', 'x-override-rid': 'a', 'x-other': '1' };
    await ask(fleet.router, chat('Hello', { priority: 1, extra_key: 'k', top_k: 5 }), headers);
    const [leg] = await fleet.sims[0].legs();
    const body = typeof leg.body === 'string' ? JSON.parse(leg.body) : leg.body;
    assert.deepEqual([body.priority, body.extra_key, body.top_k], [undefined, undefined, 5]);
    const names = Object.keys(leg.headers);
    assert.deepEqual(names.filter((name) => name.startsWith('x-sglext') || name.startsWith('x-override')), []);
    assert.ok(names.includes('x-other'));
  });

  scenario('a prompt is echoed with its log-probabilities as by one worker', async (s) => {
    const fleets = [];
    for (const counts of Object.values(roles)) fleets.push(await Fleet.start(s, { engine: 'sglang', counts }));
    const body = completion('Say it again', { echo: true, logprobs: 1, max_tokens: 4 });
    const [one, two] = await Promise.all(fleets.map(({ router }) => ask(router, body)));
    const choiceOf = ({ raw }) => JSON.parse(raw).choices[0];
    assert.equal(choiceOf(one).logprobs.tokens.length, JSON.parse(one.raw).usage.prompt_tokens + 4);
    assert.deepEqual(choiceOf(two), choiceOf(one));

    const entriesOf = ({ raw }) => eventsOf(raw).filter((data) => data !== '[DONE]').flatMap((data) => JSON.parse(data).choices)
      .reduce((all, { text, logprobs }) => ({ text: all.text + text, tokens: [...all.tokens, ...logprobs.tokens], values: [...all.values, ...logprobs.token_logprobs] }), { text: '', tokens: [], values: [] });
    const streams = await Promise.all(fleets.map(({ router }) => ask(router, { ...body, stream: true })));
    assert.deepEqual(entriesOf(streams[0]).tokens, choiceOf(one).logprobs.tokens);
    assert.deepEqual(entriesOf(streams[1]), entriesOf(streams[0]));
  });
});
