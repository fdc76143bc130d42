// SPDX-License-Identifier: Apache-2.0
// One suite for real engines and for the simulator: a case that passes on one and fails on the other is a defect of the simulator.
// BATON_ENGINE: vllm or sglang. BATON_ENGINES: the folder of tests/engines/install; without it the engines are simulated.
import assert from 'node:assert/strict';

import { scenario } from '../process/support/scenario.mjs';
import answers from './cases/answers.mjs';
import cache from './cases/cache.mjs';
import errors from './cases/errors.mjs';
import failures from './cases/failures.mjs';
import { ENGINE, KIND, Suite } from './support/suite.mjs';

const ONLY = new RegExp(process.env.BATON_CASES ?? '');

scenario(`conformance of ${KIND}`, async (s) => {
  const suite = await Suite.start(s);
  const applies = ({ name, engines = [ENGINE] }) => engines.includes(ENGINE) && ONLY.test(name);
  for (const { name, run } of [...answers, ...errors, ...cache, ...failures].filter(applies)) {
    await s.step(name, () => run(suite));
  }
  await s.step('nothing is held in the end, and nothing was held until its lease ended', async () => {
    await suite.idle();
    for (const server of suite.workers) assert.equal(await server.leaked(), 0, `${server.engine} ${server.role}`);
  });
});
