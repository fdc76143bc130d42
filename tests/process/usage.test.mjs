// SPDX-License-Identifier: Apache-2.0
// Usage as if one engine had served: prompt tokens once, cached tokens as the prefill worker reused them; and several
// choices or prompts of one request, each exact and in its place.
import assert from 'node:assert/strict';
import { describe } from 'node:test';

import { KINDS, ask, chat, checkExact, choicesOf, completion, streamed } from './support/ask.mjs';
import { FakeEngine, KV_TRANSFER_PARAMS } from './support/fake_engine.mjs';
import { ENGINES, Fleet, Router } from './support/fleet.mjs';
import { eventsOf } from './support/http.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const BLOCK = 16;
const HOW = { whole: {}, streamed };

const cachedOf = ({ usage }) => usage.prompt_tokens_details?.cached_tokens ?? 0;

/** One [DONE] at the very end, usage once and only beside no choice, one id throughout. */
function checkStream(answer) {
  const events = eventsOf(answer.raw);
  assert.equal(events.filter((data) => data === '[DONE]').length, 1);
  assert.equal(events.at(-1), '[DONE]');
  const chunks = events.slice(0, -1).map((data) => JSON.parse(data));
  const withUsage = chunks.filter(({ usage }) => usage);
  assert.equal(withUsage.length, 1, 'usage is told once');
  assert.deepEqual(withUsage[0].choices, []);
  assert.equal(new Set(chunks.map(({ id }) => id)).size, 1, 'one id');
}

function checkShape(answer, body) {
  checkExact(answer, body);
  if (body.stream) checkStream(answer);
  const { prompt_tokens: prompt, completion_tokens: made, total_tokens: total } = answer.usage;
  assert.equal(total, prompt + made);
}

describe('usage', { concurrency: 3 }, () => {
  for (const engine of ENGINES) {
    scenario(`${engine}: cached tokens are those the prefill worker reused`, async (s) => {
      const fleet = await Fleet.start(s, { engine, sim: { blockSize: BLOCK }, model: { disaggregation: 'required' } });
      for (const [kind, make] of KINDS) {
        await s.step(kind, async () => {
          const body = make(`${kind}: ${'a long prompt that is told twice '.repeat(12)}`);
          const { promptTokens } = expectedAnswer(body);
          const slug = kind.replace(', ', '-');
          const first = await ask(fleet.router, body, { 'X-Request-Id': `first-${slug}` });
          checkShape(first, body);
          assert.ok(cachedOf(first) < BLOCK, `the prompt is new, but ${cachedOf(first)} of ${promptTokens} are cached`);
          const again = await ask(fleet.router, body, { 'X-Request-Id': `again-${slug}` });
          checkShape(again, body);
          // All whole blocks before the last token, which is computed in any case.
          assert.equal(cachedOf(again), Math.floor((promptTokens - 1) / BLOCK) * BLOCK);
          for (const [name, answer] of Object.entries({ first, again })) {
            const line = await fleet.router.requestLine(`${name}-${slug}`);
            assert.equal(line.prompt_tokens, promptTokens);
            assert.equal(line.cached_tokens ?? 0, cachedOf(answer), 'the log tells the same');
          }
        });
      }
      await s.step('counted once in the metrics', async () => {
        const told = fleet.router.logLines('request').reduce((sum, line) => sum + line.prompt_tokens, 0);
        assert.equal(await fleet.router.metric('baton_prompt_tokens_total', { model: 'demo' }), told);
        await fleet.settle();
      });
    });

    scenario(`${engine}: three choices and lists of prompts`, async (s) => {
      const fleet = await Fleet.start(s, { engine, counts: { prefill: 2, decode: 2 }, model: { disaggregation: 'required' } });
      let handoffs = 0;
      const checkOne = async (body, choices) => {
        handoffs += choices;
        const answer = await ask(fleet.router, body);
        checkShape(answer, body);
        assert.equal(choicesOf({ text: answer.raw }).length, choices);
        return answer;
      };
      for (const [how, more] of Object.entries(HOW)) {
        await s.step(`n = 3, ${how}`, async () => {
          for (const make of [chat, completion]) {
            const body = make(`Three of ${how}`, { n: 3, seed: 41, ...more });
            const answer = await checkOne(body, 3);
            assert.equal(new Set(choicesOf({ text: answer.raw }).map(({ text }) => text)).size, 3, 'three different ones');
          }
        });
        await s.step(`a list of prompts, ${how}`, async () => {
          const texts = ['The first one', 'another, which is longer by far than the first', 'third'];
          await checkOne(completion(texts, more), 3);
          await checkOne(completion([[11, 12, 13, 14], [15, 16]], more), 2);
          await checkOne(completion(texts.slice(1), { n: 2, seed: 5, ...more }), 4);
          await checkOne(completion([21, 22, 23], more), 1);
          await checkOne(completion(['alone'], more), 1);
        });
      }
      await s.step('through the official client', async () => {
        const client = fleet.router.client();
        const body = chat('Three for the client', { n: 3, seed: 8 });
        const expected = expectedAnswer(body);
        const whole = await client.chat.completions.create(body);
        handoffs += 3;
        assert.deepEqual(whole.choices.map(({ index }) => index), [0, 1, 2]);
        assert.deepEqual(whole.choices.map(({ message }) => message.content), expected.choices.map(({ text }) => text));
        assert.equal(whole.usage.prompt_tokens, expected.promptTokens);
        const texts = ['', '', ''];
        for await (const chunk of await client.chat.completions.create({ ...body, ...streamed })) {
          for (const { index, delta } of chunk.choices) texts[index] += delta.content ?? '';
        }
        handoffs += 3;
        assert.deepEqual(texts, expected.choices.map(({ text }) => text));
      });
      await s.step('every choice was handed over, nothing is left', async () => {
        const states = await fleet.settle();
        const sum = (role, key) => states.reduce((all, state, i) => all + (fleet.sims[i].role === role ? state[key] : 0), 0);
        assert.equal(sum('decode', 'fetched'), handoffs);
        assert.equal(sum('prefill', 'requests'), handoffs);
        assert.equal(sum('decode', 'recomputed') + sum('decode', 'refused'), 0);
      });
    });

    scenario(`${engine}: a choice that fails fails the request, and leaves nothing`, async (s) => {
      const fleet = await Fleet.start(s, { engine, model: { disaggregation: 'required', retries: 0 } });
      await fleet.router.ready();
      for (const more of Object.values(HOW)) {
        await fleet.of('decode')[0].fault({ kind: 'status', status: 500, phase: 'decode', count: 1 });
        const answer = await ask(fleet.router, chat('Two of three', { n: 3, seed: 1, ...more }));
        assert.equal(answer.error?.code, 'engine_failed', answer.raw);
        assert.ok(!answer.done || answer.status !== 200, 'not a success');
        await fleet.settle();
      }
    });
  }
});

/** Fields of vLLM 0.32, and one that does not exist. */
const usageOf = (prompt, completion, created, cached) => ({
  prompt_tokens: prompt,
  total_tokens: prompt + completion,
  completion_tokens: completion,
  prompt_tokens_details: { cached_tokens: cached, created_cache_tokens: created, multimodal_tokens: { image: 4 } },
  completion_tokens_details: { reasoning_tokens: completion - 1, unheard_of: { deep: 2 } },
});

scenario('details of usage that no release had before', async (s) => {
  const prefill = await FakeEngine.start(s);
  const decode = await FakeEngine.start(s);
  const workers = [prefill.worker('prefill'), decode.worker('decode')];
  const router = await Router.start(s, { models: [{ name: 'demo', workers, disaggregation: 'required' }] });
  await router.allUp();
  const answerWith = (usage, finish, more = {}) => (leg, response) => {
    const head = { id: 'c-1', object: 'chat.completion', created: 1, model: 'demo' };
    const message = { role: 'assistant', content: 'hello' };
    if (leg.stream) {
      const events = [{ ...head, choices: [{ index: 0, delta: message, finish_reason: finish }] }, { ...head, choices: [], usage }];
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`);
    } else {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...head, choices: [{ index: 0, message, finish_reason: finish }], usage, ...more }));
    }
    return true;
  };
  prefill.behave = answerWith(usageOf(130, 1, 128, 0), 'length', { kv_transfer_params: JSON.parse(KV_TRANSFER_PARAMS.replace('18446744073709551615', '3')) });
  decode.behave = answerWith(usageOf(130, 5, 0, 130), 'stop');
  for (const [how, more] of Object.entries(HOW)) {
    await s.step(`two legs, ${how}: the prompt's from the leg that computed it`, async () => {
      const { usage } = await ask(router, chat('Hello', more));
      assert.deepEqual(usage, { ...usageOf(130, 5, 128, 0) });
    });
    await s.step(`three choices, ${how}: the prompt once, the answers together`, async () => {
      const { usage } = await ask(router, chat('Hello', { ...more, n: 3 }));
      assert.deepEqual(usage, {
        ...usageOf(130, 15, 128, 0),
        completion_tokens_details: { reasoning_tokens: 12, unheard_of: { deep: 6 } },
      });
    });
  }
});
