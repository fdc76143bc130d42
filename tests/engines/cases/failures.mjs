// SPDX-License-Identifier: Apache-2.0
// Clients that leave and servers that die: nothing stays held, and streams go on where they can.
import assert from 'node:assert/strict';

import { Call } from '../../process/support/call.mjs';
import { inTime, until } from '../../process/support/process.mjs';
import { ask, chat, completion, same, streamed } from '../support/suite.mjs';

const TEXT = Array.from({ length: 120 }, (_, i) => `Sentence ${i} of a prompt that takes a while.`).join(' ');

const left = (name, leave) => ({
  name: `client leaves ${name}`,
  push: true,
  run: async (suite) => {
    for (let i = 0; i < 4; ++i) {
      const call = new Call(suite.baton.address, chat(`${i} ${name} ${TEXT}`, { max_tokens: 200, ignore_eos: true, stream: true }));
      await leave(call, i);
      call.leave();
      await call.ended;
    }
    await until('nothing is in flight', async () => (await suite.baton.inFlight()) === 0);
    await suite.idle();
  },
});

/** Streams a long answer, strikes when it has begun, and compares the whole with a direct answer. */
async function throughAStrike(suite, body, strike) {
  const direct = await ask(suite.direct, body);
  const call = new Call(suite.baton.address, body);
  await until('the stream has begun', () => call.events > 5 || call.over);
  await strike();
  const { text } = await inTime('the end of the stream', call.ended, 240_000);
  return { direct, call, text };
}

export default [
  left('at once', async () => {}),
  left('in the prefill', (_, i) => new Promise((resolve) => setTimeout(resolve, 5 + 15 * i))),
  left('at the first token', (call) => until('a token', () => call.events > 0 || call.over)),
  left('in the middle', (call) => until('ten tokens', () => call.events > 10 || call.over)),
  {
    name: 'eight at once',
    push: true,
    run: async (suite) => {
      const bodies = Array.from({ length: 8 }, (_, i) => chat(`Number ${i}. ${TEXT}`, { max_tokens: 12 }));
      const direct = [];
      for (const body of bodies) direct.push(await ask(suite.direct, body));
      const answers = await Promise.all(bodies.map((body) => ask(suite.baton, body)));
      answers.forEach((answer, i) => assert.equal(answer.choices[0].message?.content, direct[i].choices[0].message.content, answer.text));
      await suite.idle();
    },
  },
  {
    name: 'the decode server dies in a stream and comes back',
    push: true,
    run: async (suite) => {
      const body = completion('A stream that is cut:', { max_tokens: 60, ignore_eos: true, ...streamed });
      let restarted;
      const { direct, text } = await throughAStrike(suite, body, async () => {
        await suite.decode.kill();
        restarted = suite.decode.restart();
      });
      await restarted;
      // One decode server alone: the stream ends as an error, or goes on when the server is back in time. Never a false end.
      const answer = text.includes('"error"') ? undefined : text;
      if (answer) assert.equal((answer.match(/\[DONE\]/g) ?? []).length, 1);
      else assert.ok(!text.includes('[DONE]'), text.slice(-500));
      assert.equal(direct.status, 200);
      await suite.baton.allUp('tiny');
      await until('it serves again', async () => (await ask(suite.baton, chat('Back?', { max_tokens: 4 }))).status === 200, 60_000);
      await same(suite, chat('And right?'), { usage: false });
      await suite.idle();
    },
  },
  {
    name: 'the prefill server dies and comes back',
    push: true,
    run: async (suite) => {
      await suite.prefill.kill();
      const during = await ask(suite.baton, chat('Is there a prefill server?', { max_tokens: 4 }));
      assert.ok([200, 502, 503].includes(during.status), during.text);
      await suite.prefill.restart();
      await suite.baton.allUp('tiny');
      await until('it serves again', async () => (await ask(suite.baton, chat('Back?', { max_tokens: 4 }))).status === 200, 60_000);
      await same(suite, chat('And right again?'), { usage: false });
      await suite.idle();
    },
  },
];
