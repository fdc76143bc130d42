// SPDX-License-Identifier: Apache-2.0
// Blocks that a vLLM prefill worker keeps and no worker needs are freed once: not never, and not twice.
import assert from 'node:assert/strict';

import { ask, chat, checkExact, servedBy } from './support/ask.mjs';
import { Router, Sim, Fleet } from './support/fleet.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { firstWord } from './support/text.mjs';

// Longer than a scenario takes: what it frees counts as leaked.
const LEASE_MS = 60_000;

async function startFleet(s, handoff, decodes = 1, more = {}) {
  const flags = { handoff, leaseMs: LEASE_MS, ...more };
  const fleet = new Fleet();
  fleet.sims = [await Sim.start(s, { role: 'prefill', engineId: 'p-1', ...flags })];
  for (let i = 0; i < decodes; ++i) fleet.sims.push(await Sim.start(s, { role: 'decode', ...flags }));
  const workers = fleet.sims.map((sim) => ({ ...sim.worker(), handoff }));
  if (handoff === 'nixl_push') workers[0].nixl = { engine_id: 'p-1', side_channel: fleet.sims[0].address };
  fleet.router = await Router.start(s, { models: [{ name: 'demo', workers, retries: 0 }] });
  await fleet.router.allUp();
  return fleet;
}

// With push the decode worker takes the blocks though its leg is closed, but only if it has told the prefill worker where to write.
// So the prefill is held until then. Otherwise a slow decode worker leaves the blocks to their lease.
async function askHeld(fleet, body) {
  const [prefill, decode] = fleet.sims;
  prefill.process.signal('SIGSTOP');
  try {
    const asked = ask(fleet.router, body);
    await until('the decode worker waits for the blocks', async () => (await decode.state()).waiting === 1);
    prefill.process.signal('SIGCONT');
    return await asked;
  } finally {
    prefill.process.signal('SIGCONT'); // a paused process cannot be asked to end
  }
}

for (const handoff of ['nixl_pull', 'nixl_push']) {
  scenario(`${handoff}: a request that ends in the prefill leaves nothing pinned`, async (s) => {
    const fleet = await startFleet(s, handoff);
    for (const stream of [false, true]) {
      const plain = chat(`Stop at once, ${stream}: ${'many words '.repeat(20)}`);
      const body = { ...plain, stop: [firstWord(plain)], stream };
      const answer = handoff === 'nixl_push' ? await askHeld(fleet, body) : await ask(fleet.router, body);
      checkExact(answer, body);
      assert.equal(servedBy(answer).prefill, fleet.sims[0].address);
      await fleet.settle();
    }
    const states = await fleet.states();
    assert.equal(states[1].stranded, 0);
  });

  scenario(`${handoff}: a decode leg that is refused or fails has its blocks freed once`, async (s) => {
    const fleet = await startFleet(s, handoff, 2);
    for (const status of [400, 404, 500]) {
      await s.step(String(status), async () => {
        for (const sim of fleet.of('decode')) await sim.fault({ kind: 'status', status, count: 1, phase: 'decode' });
        const answer = await ask(fleet.router, chat(`Refused with ${status}`));
        assert.equal(answer.status, status === 500 ? 502 : status, answer.raw);
        for (const sim of fleet.of('decode')) await sim.clearFaults();
        await fleet.settle();
      });
    }
    const body = chat('Served again');
    checkExact(await ask(fleet.router, body), body);
    await fleet.settle();
  });
}

scenario('nixl_pull: what a decode worker was fetching when it died, another one takes', async (s) => {
  const fleet = await startFleet(s, 'nixl_pull', 2, { transferMs: 1_000 });
  const [prefill, ...decodes] = fleet.sims;
  const body = chat('Taken half way');
  const asked = ask(fleet.router, body);
  await until('the blocks are under way', async () => (await prefill.state()).transferring === 1);
  const running = await Promise.all(decodes.map(async (sim) => (await sim.state()).running + (await sim.state()).waiting));
  const victim = decodes[running.findIndex((count) => count > 0)];
  victim.process.expectedExit = undefined;
  victim.process.signal('SIGKILL');
  await victim.process.ended();
  assert.equal((await asked).status, 502, 'no retries');
  fleet.sims = fleet.sims.filter((sim) => sim !== victim);
  await fleet.settle();
});
