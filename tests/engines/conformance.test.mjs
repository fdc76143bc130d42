// SPDX-License-Identifier: Apache-2.0
// One suite for real engines and for the simulator: a case that passes on one and fails on the other is a defect of the simulator.
// BATON_ENGINE: vllm or sglang, or an older release as in vllm-0.12. BATON_HANDOFF: pull or push, of vLLM's two; both without it. BATON_ENGINES: the folder of tests/engines/install; without it the engines are simulated.
import assert from 'node:assert/strict';

import { scenario } from '../process/support/scenario.mjs';
import answers from './cases/answers.mjs';
import cache from './cases/cache.mjs';
import errors from './cases/errors.mjs';
import failures from './cases/failures.mjs';
import fleet from './cases/fleet.mjs';
import { ENGINE, KIND, OLD_VLLM, Suite } from './support/suite.mjs';

const ONLY = new RegExp(process.env.BATON_CASES ?? '');
const ALL = [...answers, ...errors, ...cache, ...failures, ...fleet];

/** Runs the cases that are meant for the engine and the mode, and looks that nothing is left behind. */
function conformance(name, handoff, cases) {
  const applies = (one) => (one.engines ?? [ENGINE]).includes(ENGINE) && ONLY.test(`${name}: ${one.name}`);
  const chosen = cases.filter(applies);
  if (chosen.length === 0) return;
  scenario(name, async (s) => {
    const suite = await Suite.start(s, { handoff });
    for (const { name: step, run } of chosen) await s.step(step, () => run(suite));
    await s.step('nothing is held in the end, and nothing was held until its lease ended', async () => {
      await suite.idle();
      for (const server of suite.workers) assert.equal(await server.leaked(), 0, `${server.engine} ${server.role}`);
    });
  });
}

const wanted = (handoff) => (process.env.BATON_HANDOFF ?? handoff) === handoff;
if (wanted('pull')) conformance(`conformance of ${KIND}`, undefined, ALL);
// Both legs at once, which vLLM has from 0.24 on: what depends on their order.
if (wanted('push') && ENGINE === 'vllm' && !OLD_VLLM) conformance(`conformance of ${KIND}, nixl_push`, 'nixl_push', ALL.filter(({ push }) => push));
