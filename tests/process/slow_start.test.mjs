// SPDX-License-Identifier: Apache-2.0
// A worker whose first prompt takes long, as a real engine's does while it compiles, is not written off for it.
import assert from 'node:assert/strict';

import { Dice, pause } from './support/dice.mjs';
import { Fleet } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const STALL_MS = 2_000;
const AT_ONCE = 16;
const ANSWERS = 150;
const TOKENS = 4_096;
const FEWEST = 0.25; // of the prompts, with two workers

const dice = new Dice(20261119);
const prompt = (tokens) => Array.from({ length: tokens }, () => dice.below(40_000));

async function complete(fleet, tokens) {
  const body = JSON.stringify({ model: 'demo', prompt: prompt(tokens), max_tokens: 1, stream: true });
  const { status, text } = await request(fleet.router.address, { path: '/v1/completions', body });
  assert.equal(status, 200, text);
}

const counts = (fleet) => Promise.all(fleet.of('prefill').map(async (sim) => (await sim.state()).requests));

scenario('a prefill worker that stood still for two seconds gets its share again', async (s) => {
  // A prompt takes 25 ms, so one worker alone would keep all of them waiting for less time than the other stood still.
  const sim = { prefillTokensPerSecond: 40 * TOKENS, blocks: 32_768 };
  const fleet = await Fleet.start(s, { counts: { prefill: 2, decode: 2 }, sim, model: { policy: 'ttft' } });
  const [stalled] = fleet.of('prefill');
  stalled.process.signal('SIGSTOP');
  const first = Array.from({ length: 6 }, () => complete(fleet, 20));
  await pause(STALL_MS);
  stalled.process.signal('SIGCONT');
  await inTime('the first prompts are answered', Promise.all(first));

  let over = false;
  let answered = 0;
  const sender = async () => {
    while (!over) {
      await complete(fleet, TOKENS);
      ++answered;
    }
  };
  const senders = Promise.all(Array.from({ length: AT_ONCE }, sender));
  senders.catch(() => {}); // told below
  s.after(() => (over = true));
  const more = async (count) => {
    const goal = answered + count;
    await Promise.race([until(() => `${count} more answers; ${answered} so far`, () => answered >= goal, 60_000), senders]);
    return counts(fleet);
  };
  // What was measured while it stood still counts for a few seconds.
  const before = await more(ANSWERS);
  const after = await more(ANSWERS);
  over = true;
  await inTime('all are answered', senders, 60_000);
  const got = after.map((count, i) => count - before[i]);
  const share = got[0] / (got[0] + got[1]);
  assert.ok(share >= FEWEST, `the worker that stood still got ${got[0]} of ${got[0] + got[1]} prompts`);
  await fleet.settle();
});
