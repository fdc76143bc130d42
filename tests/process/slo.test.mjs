// SPDX-License-Identifier: Apache-2.0
// A model with a service level objective: what cannot be served in time is refused at once, or waits behind the rest.
import assert from 'node:assert/strict';

import { Dice } from './support/dice.mjs';
import { Fleet } from './support/fleet.mjs';
import { fetchText, request } from './support/http.mjs';
import { inTime } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';

const TOKENS = 2_000;
const dice = new Dice(20261120);
const body = () =>
  JSON.stringify({
    model: 'demo',
    prompt: Array.from({ length: TOKENS }, () => dice.below(40_000)),
    max_tokens: 4,
    stream: true,
  });
const complete = (fleet) => request(fleet.router.address, { path: '/v1/completions', body: body() });

// A prompt takes 100 ms on one of two workers.
const sim = { prefillTokensPerSecond: 10 * TOKENS, blocks: 32_768, decodeMs: 2 };
const start = (s, slo) => Fleet.start(s, { counts: { prefill: 2, decode: 2 }, sim, model: { policy: 'ttft', slo } });

// The speeds are shown one after the other.
async function warmUp(fleet) {
  for (let i = 0; i < 8; ++i) assert.equal((await complete(fleet)).status, 200);
}

async function sample(fleet, name, labels) {
  const text = await fetchText(fleet.router.admin, '/metrics');
  const line = text.split('\n').find((one) => one.startsWith(`${name}{`) && labels.every((label) => one.includes(label)));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

scenario('what cannot have its first token in time is refused at once, and the rest is served', async (s) => {
  const fleet = await start(s, { ttft: '1s' });
  await warmUp(fleet);
  const answers = await inTime('all are answered', Promise.all(Array.from({ length: 80 }, () => complete(fleet))));
  const served = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 503);
  assert.equal(served.length + refused.length, answers.length);
  // Two workers compute at most twenty prompts in a second; four seconds' worth came.
  assert.ok(served.length >= 4 && served.length <= 40, `${served.length} served`);
  for (const { text, headers } of refused) {
    const { error } = JSON.parse(text);
    assert.equal(error.code, 'slo_unattainable');
    assert.equal(error.details.limit_kind, 'slo_ttft_ms');
    assert.equal(error.details.limit, 1000);
    assert.ok(error.details.current > 900, `${error.details.current} ms were foreseen`);
    assert.match(headers['retry-after'], /^[1-9][0-9]*$/);
  }
  for (const { text } of served) assert.ok(text.endsWith('data: [DONE]\n\n'), text.slice(-200));
  const count = async (outcome) => (await sample(fleet, 'baton_slo_requests_total', [`outcome="${outcome}"`])) ?? 0;
  assert.equal(await count('refused'), refused.length);
  assert.equal((await count('met')) + (await count('missed')), served.length + 8);
  const attainment = await sample(fleet, 'baton_slo_attainment', ['model="demo"']);
  assert.ok(attainment >= 0 && attainment <= 1, `${attainment}`);
  assert.equal((await complete(fleet)).status, 200);
  await fleet.settle();
});

scenario('with when_late: queue nothing is refused', async (s) => {
  const fleet = await start(s, { ttft: '300ms', when_late: 'queue' });
  await warmUp(fleet);
  const answers = await inTime('all are answered', Promise.all(Array.from({ length: 40 }, () => complete(fleet))));
  assert.deepEqual(answers.map(({ status }) => status), Array(40).fill(200));
  await fleet.settle();
});

scenario('a prompt that no worker could compute in time is served all the same', async (s) => {
  const fleet = await start(s, { ttft: '60ms' });
  await warmUp(fleet);
  const answers = await inTime('all are answered', Promise.all(Array.from({ length: 6 }, () => complete(fleet))));
  assert.deepEqual(answers.map(({ status }) => status), Array(6).fill(200));
  await fleet.settle();
});

scenario('advice tells how many workers the last minutes needed', async (s) => {
  const fleet = await start(s, { ttft: '1s', itl: '40ms' });
  await warmUp(fleet);
  const [model] = JSON.parse(await fetchText(fleet.router.admin, '/v1/advice')).models;
  assert.equal(model.model, 'demo');
  assert.deepEqual(model.objective, { ttft_ms: 1000, itl_ms: 40 });
  assert.deepEqual(model.roles.map(({ role }) => role).sort(), ['decode', 'prefill']);
  for (const { role, wanted, available, reason } of model.roles) {
    assert.ok(wanted >= 1, role);
    assert.equal(available, 2);
    assert.ok(reason.length > 0);
    const gauge = await sample(fleet, 'baton_wanted_workers', ['model="demo"', `role="${role}"`]);
    assert.equal(gauge, wanted);
  }
  await fleet.settle();
});
