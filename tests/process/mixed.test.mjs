// SPDX-License-Identifier: Apache-2.0
// A model with aggregated workers beside prefill and decode ones: all of them work, and every answer is exact.
import assert from 'node:assert/strict';

import { ENGINES, Fleet } from './support/fleet.mjs';
import { readAnswer, request } from './support/http.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const COUNTS = { aggregated: 2, prefill: 2, decode: 2 };
// Chance decides between the two ways; of so many requests neither gets fewer than its two workers need.
const ROUNDS = 10;
const AT_ONCE = 8;

async function checkOne(fleet, i) {
  const body = { model: 'demo', messages: [{ role: 'user', content: `Number ${i}, either way` }], stream: i % 2 === 0 };
  const raw = await request(fleet.router.address, { path: '/v1/chat/completions', body: JSON.stringify(body) });
  const answer = readAnswer(raw);
  const [expected] = expectedAnswer(body).choices;
  assert.equal(answer.status, 200, raw.text);
  assert.equal(answer.text, expected.text);
  assert.equal(answer.finish, expected.finish);
  assert.ok(answer.done && answer.complete, 'a whole answer');
}

async function checkShares(fleet) {
  const states = await fleet.settle();
  const of = (role, key) => states.filter((_, i) => fleet.sims[i].role === role).map((state) => state[key]);
  const sum = (role, key) => of(role, key).reduce((total, value) => total + value, 0);
  for (const role of Object.keys(COUNTS)) {
    assert.ok(of(role, 'requests').every((count) => count > 0), `${role} workers got ${of(role, 'requests')}`);
  }
  assert.equal(sum('aggregated', 'requests') + sum('decode', 'requests'), ROUNDS * AT_ONCE, 'each request was answered once');
  assert.equal(sum('prefill', 'requests'), sum('decode', 'requests'), 'what one decoded another prefilled');
  assert.equal(sum('decode', 'fetched'), sum('decode', 'requests'));
  for (const state of states) assert.equal(state.recomputed + state.refused, 0);
}

const FLEETS = Object.fromEntries(ENGINES.map((engine) => [engine, { engine }]));
FLEETS['sglang beside aggregated vllm'] = { engine: 'sglang', engines: { aggregated: 'vllm' } };

for (const [name, fleetOptions] of Object.entries(FLEETS)) {
  scenario(`${name}: all workers of a mixed fleet serve`, async (s) => {
    const fleet = await Fleet.start(s, { ...fleetOptions, counts: COUNTS });
    for (let round = 0; round < ROUNDS; ++round) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => checkOne(fleet, round * AT_ONCE + i)));
    }
    await checkShares(fleet);
  });
}
