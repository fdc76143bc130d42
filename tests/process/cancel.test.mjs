// SPDX-License-Identifier: Apache-2.0
// A client that leaves, at every phase and with every engine: no request, no pinned block and no in-flight count stays.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { ENGINES, Fleet } from './support/fleet.mjs';
import { RawConnection, readAnswer, request, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const CHAT = '/v1/chat/completions';
const LIMITS = { minOutput: 200, maxOutput: 200 };
// A prefill leg that is not tied to its client (SGLang's) may stay until its own timeout, but no longer.
// One thread, so that every leg finds a kept connection of the request before: a leg that is given up must not be taken
// for one whose kept connection had died, and be sent again.
const configure = (grace) => ({ threads: 1, timeouts: { first_byte: '5s', idle: '5s', handoff_grace: grace } });
const CONFIG = configure('4s'); // longer than any whole answer takes: before it, it is unknown which blocks were fetched
const IMPATIENT = configure('1500ms');
const chat = (text, stream) => ({ model: 'demo', messages: [{ role: 'user', content: `${text} ${'and so on '.repeat(30)}` }], stream });

async function send(fleet, body) {
  const connection = await RawConnection.open(fleet.router.address);
  return connection.write(wire('POST', CHAT, { 'Content-Type': 'application/json' }, JSON.stringify(body)));
}

const requestsOf = async (sim) => (await sim.state()).requests;

/** Sends a request that meets `fault` at `sim`, and leaves once `moment` has come (by default: once it arrived there). */
async function leave(fleet, sim, body, fault, moment) {
  const before = await requestsOf(sim);
  if (fault) await sim.fault(fault);
  try {
    const client = await send(fleet, body);
    if (moment) await moment(client);
    else await until(`a request at ${sim.process.name}`, async () => (await requestsOf(sim)) > before);
    client.destroy();
    await fleet.idle();
  } finally {
    await sim.clearFaults();
  }
}

async function depart(fleet, sim, body, fault, moment) {
  const before = await requestsOf(sim);
  await leave(fleet, sim, body, fault, moment);
  assert.equal(await requestsOf(sim), before + 1, 'the leg was sent once');
}

/** After every departure the same fleet must be empty, and still serve. */
async function checkAfterwards(fleet) {
  await fleet.settle();
  const body = { ...chat('Still there?', true), max_tokens: 8 };
  const call = request(fleet.router.address, { path: CHAT, body: JSON.stringify(body) });
  const answer = readAnswer(await inTime('a clean request', call));
  assert.equal(answer.text, expectedAnswer(body, LIMITS).choices[0].text);
  await fleet.settle();
}

const headArrives = async (client) => assert.equal((await inTime('a head', client.head())).status, 200);

// Fleets that run at once: they mostly wait for the grace.
describe('leaving', { concurrency: 3 }, () => {
  for (const engine of ENGINES) {
    scenario(`${engine}: leaving a handed-over request`, async (s) => {
      const fleet = await Fleet.start(s, { engine, sim: { decodeMs: 2, ...LIMITS }, config: CONFIG });
      const [prefill] = fleet.of('prefill');
      const [decode] = fleet.of('decode');
      const steps = {
        'while prefill hangs': [prefill, { kind: 'hang', phase: 'prefill' }],
        'while prefill is slow': [prefill, { kind: 'slow', phase: 'prefill', delay_ms: 300 }],
        'while decode is slow': [decode, { kind: 'slow', phase: 'decode', delay_ms: 300 }],
        'while decode works': [decode, undefined],
      };
      for (const stream of [true, false]) {
        for (const [name, [sim, fault]] of Object.entries(steps)) {
          await s.step(`${name}, ${stream ? 'streamed' : 'whole'}`, async () => {
            await depart(fleet, sim, chat(name, stream), fault);
            await checkAfterwards(fleet);
          });
        }
      }
      await s.step('in the middle of the stream', async () => {
        await depart(fleet, decode, chat('Mid-stream', true), undefined, headArrives);
        await checkAfterwards(fleet);
      });
      await s.step('while no tokens flow', async () => {
        const silence = { kind: 'hang_stream', phase: 'decode', after_tokens: 3 };
        await depart(fleet, decode, chat('Silence', true), silence, headArrives);
        await checkAfterwards(fleet);
      });
      await s.step('at many moments, without waiting for any', async () => {
        for (let i = 0; i < 40; ++i) {
          const client = await send(fleet, chat(`Impatient ${i}`, i % 2 === 0));
          await new Promise((resolve) => setTimeout(resolve, i % 20)); // where it strikes is the point, not when
          client.destroy();
        }
        await checkAfterwards(fleet);
      });
    });

    scenario(`${engine}: leaving while the decode worker hangs`, async (s) => {
      const fleet = await Fleet.start(s, { engine, sim: LIMITS, config: IMPATIENT });
      const [decode] = fleet.of('decode');
      const releases = () => fleet.router.metric('baton_handoff_releases_total');
      for (const stream of [true, false]) {
        await s.step(stream ? 'streamed' : 'whole', async () => {
          const [before, released] = [await requestsOf(decode), await releases()];
          await leave(fleet, decode, chat('Hanging decode', stream), { kind: 'hang', phase: 'decode', count: 1 });
          await checkAfterwards(fleet);
          // SGLang's prefill leg is dropped, and lets the blocks go; vLLM's decode worker tells the prefill worker of
          // requests that are closed; TensorRT-LLM's blocks need a worker that takes them.
          const release = engine === 'trtllm' ? 1 : 0;
          assert.equal((await releases()) - released, release);
          assert.equal((await requestsOf(decode)) - before, 2 + release, 'the leg, the release and the request afterwards');
        });
      }
    });

    scenario(`${engine}: leaving while the only decode worker hangs for good`, async (s) => {
      // No worker can fetch the blocks of the prefill worker, so its lease must end it; the router gives up after a few tries.
      const fleet = await Fleet.start(s, { engine, sim: { leaseMs: 2000, ...LIMITS }, config: IMPATIENT });
      const [decode] = fleet.of('decode');
      const before = await requestsOf(decode);
      await leave(fleet, decode, chat('Hanging for good', true), { kind: 'hang', phase: 'decode' });
      assert.ok((await requestsOf(decode)) - before <= 3, 'a leg and at most two tries to release');
      await until('nothing is pinned', async () => (await fleet.states()).every(({ pinned }) => pinned === 0));
    });

    scenario(`${engine}: leaving an aggregated request`, async (s) => {
      const fleet = await Fleet.start(s, { engine, counts: { aggregated: 1 }, sim: { decodeMs: 2, ...LIMITS }, config: CONFIG });
      for (const stream of [true, false]) {
        for (const fault of [undefined, { kind: 'hang' }, { kind: 'hang_stream', after_tokens: 2 }]) {
          await s.step(`${stream ? 'streamed' : 'whole'}, ${fault?.kind ?? 'running'}`, async () => {
            await depart(fleet, fleet.sims[0], chat('Aggregated', stream), fault);
            await checkAfterwards(fleet);
          });
        }
      }
    });
  }
});
