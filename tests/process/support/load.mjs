// SPDX-License-Identifier: Apache-2.0
// Requests without a pause, on several senders, until they are stopped.
import assert from 'node:assert/strict';

import { ask, chat, checkExact, servedBy, streamed } from './ask.mjs';
import { until } from './process.mjs';

/**
 * Every answer must be exact, or an error with one of the codes in `told`; the others are held against stop(). `model`: who is
 * asked.
 */
export function load(s, router, { width = 6, told = [], model = 'demo' } = {}) {
  let over = false;
  const sums = { sent: 0, served: 0, refused: 0 };
  const wrong = [];
  let pairs = new Map();

  const send = async () => {
    const body = chat(`request ${sums.sent}`, { ...(sums.sent++ % 2 ? streamed : {}), model });
    const answer = await ask(router, body);
    if (told.includes(answer.error?.code)) {
      ++sums.refused;
      return;
    }
    checkExact(answer, body);
    ++sums.served;
    const { prefill, decode } = servedBy(answer);
    pairs.set(`${prefill} ${decode}`, (pairs.get(`${prefill} ${decode}`) ?? 0) + 1);
  };
  const sender = async () => {
    while (!over) await send().catch((error) => wrong.push(error.message));
  };
  const senders = Promise.all(Array.from({ length: width }, sender));
  s.after(() => (over = true)); // also where a test ends early

  return {
    /** Waits for so many more answers; returns who gave them since: 'prefill decode' → requests. */
    async next(count) {
      pairs = new Map();
      const answered = () => sums.served + sums.refused + wrong.length;
      const goal = answered() + count;
      await until(`${count} more answers`, () => answered() >= goal);
      return pairs;
    },
    /** {sent, served, refused} of all its time. */
    async stop() {
      over = true;
      await senders;
      assert.deepEqual(wrong.slice(0, 3), [], `${wrong.length} of ${sums.sent} requests failed`);
      return sums;
    },
  };
}
