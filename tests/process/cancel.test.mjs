// SPDX-License-Identifier: Apache-2.0
// A client that leaves, at every phase and with every engine: no request, no pinned block and no in-flight count stays.
import assert from 'node:assert/strict';

import { ENGINES, Fleet } from './support/fleet.mjs';
import { RawConnection, readAnswer, request, wire } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const CHAT = '/v1/chat/completions';
const LIMITS = { minOutput: 400, maxOutput: 400 };
// A prefill leg that is not tied to its client (SGLang's) may stay until its own timeout, but no longer.
const CONFIG = { timeouts: { first_byte: '10s', idle: '10s' } };
const chat = (text, stream) => ({ model: 'demo', messages: [{ role: 'user', content: `${text} ${'and so on '.repeat(30)}` }], stream });

async function send(fleet, body) {
  const connection = await RawConnection.open(fleet.router.address);
  return connection.write(wire('POST', CHAT, { 'Content-Type': 'application/json' }, JSON.stringify(body)));
}

/** Waits for one more request leg at a simulator than `before`. */
function arrival(sim, before) {
  return until(`a request at ${sim.process.name}`, async () => (await sim.state()).requests > before);
}

const requestsOf = async (sim) => (await sim.state()).requests;

/** After every departure the same fleet must be empty, and still serve. */
async function checkAfterwards(fleet) {
  await fleet.settle();
  for (const sim of fleet.sims) await sim.clearFaults();
  const body = { ...chat('Still there?', true), max_tokens: 8 };
  const answer = readAnswer(await inTime('a clean request', request(fleet.router.address, { path: CHAT, body: JSON.stringify(body) })));
  assert.equal(answer.text, expectedAnswer(body, LIMITS).choices[0].text);
  await fleet.settle();
}

for (const engine of ENGINES) {
  scenario(`${engine}: leaving a handed-over request`, async (s) => {
    const fleet = await Fleet.start(s, { engine, sim: { decodeMs: 5, ...LIMITS }, config: CONFIG });
    const [prefill] = fleet.of('prefill');
    const [decode] = fleet.of('decode');
    for (const stream of [true, false]) {
      const how = stream ? 'streamed' : 'whole';
      await s.step(`while prefill hangs, ${how}`, async () => {
        const before = await requestsOf(prefill);
        await prefill.fault({ kind: 'hang', phase: 'prefill' });
        const client = await send(fleet, chat('Hanging prefill', stream));
        await arrival(prefill, before);
        client.destroy();
        await checkAfterwards(fleet);
      });
      await s.step(`while prefill is slow, ${how}`, async () => {
        const before = await requestsOf(prefill);
        await prefill.fault({ kind: 'slow', phase: 'prefill', delay_ms: 300 });
        const client = await send(fleet, chat('Slow prefill', stream));
        await arrival(prefill, before);
        client.destroy();
        await checkAfterwards(fleet);
      });
      await s.step(`while decode hangs before its first byte, ${how}`, async () => {
        const before = await requestsOf(decode);
        await decode.fault({ kind: 'hang', phase: 'decode' });
        const client = await send(fleet, chat('Hanging decode', stream));
        await arrival(decode, before);
        client.destroy();
        await checkAfterwards(fleet);
      });
      await s.step(`while decode works, ${how}`, async () => {
        const client = await send(fleet, chat('Working decode', stream));
        await until('decode runs', async () => (await decode.state()).running > 0);
        client.destroy();
        await checkAfterwards(fleet);
      });
    }
    await s.step('in the middle of the stream', async () => {
      const client = await send(fleet, chat('Mid-stream', true));
      assert.equal((await client.head()).status, 200);
      client.destroy();
      await checkAfterwards(fleet);
    });
    await s.step('while no tokens flow', async () => {
      await decode.fault({ kind: 'hang_stream', phase: 'decode', after_tokens: 3 });
      const client = await send(fleet, chat('Silence', true));
      assert.equal((await client.head()).status, 200);
      client.destroy();
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

  scenario(`${engine}: leaving an aggregated request`, async (s) => {
    const fleet = await Fleet.start(s, { engine, counts: { aggregated: 1 }, sim: { decodeMs: 5, ...LIMITS }, config: CONFIG });
    const [worker] = fleet.sims;
    for (const stream of [true, false]) {
      for (const fault of [undefined, { kind: 'hang' }, { kind: 'hang_stream', after_tokens: 2 }]) {
        await s.step(`${stream ? 'streamed' : 'whole'}, ${fault?.kind ?? 'running'}`, async () => {
          const before = await requestsOf(worker);
          if (fault) await worker.fault(fault);
          const client = await send(fleet, chat('Aggregated', stream));
          await arrival(worker, before);
          client.destroy();
          await checkAfterwards(fleet);
        });
      }
    }
  });
}
