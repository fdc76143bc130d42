// SPDX-License-Identifier: Apache-2.0
// Prompts as token ids: made by the router or asked of an engine, handed on to the engines that take them, shown to people.
// The simulated engines tokenize for themselves with the same files and count every difference.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { ask, chat, CHAT, checkRefused, choicesOf, completion, KINDS } from './support/ask.mjs';
import { ENGINES, Fleet, Router, Sim } from './support/fleet.mjs';
import { request } from './support/http.mjs';
import { until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { bytesOf, ID, tokenizerJson, writeTinyModel } from './support/tiny_model.mjs';

const run = promisify(execFile);
const BATON = process.env.BATON;
const LONG = 'hi there, all of you. '.repeat(2_000); // too long to be tokenized on an I/O thread

const sum = (states, key) => states.reduce((total, { counters, ...state }) => total + (counters ?? state)[key], 0);
const textOf = (answer) => choicesOf({ text: answer.raw }).map(({ text }) => text);

async function post(address, path, body) {
  const answer = await request(address, { path, body: JSON.stringify(body) });
  return { status: answer.status, json: JSON.parse(answer.text) };
}

for (const engine of ENGINES) {
  for (const counts of [{ prefill: 1, decode: 1 }, { aggregated: 1 }]) {
    const shape = Object.keys(counts).join(' and ');
    scenario(`${engine}, ${shape}: engines get the ids that they would have made`, async (s) => {
      const tokenizer = await writeTinyModel(s);
      const fleet = await Fleet.start(s, { engine, counts, sim: { tokenizer }, model: { tokenizer } });
      const alone = await Sim.start(s, { engine, tokenizer });
      for (const [kind, make] of KINDS) {
        for (const text of ['hi, how are you?', 'Grüße, 世界 <|user|> 🙂', LONG]) {
          await s.step(`${kind}, ${text.length} characters`, async () => {
            const body = make(text, { max_tokens: 8 });
            const answer = await ask(fleet.router, body);
            const direct = await ask(alone, body);
            assert.equal(answer.status, 200, answer.raw);
            assert.deepEqual(textOf(answer), textOf(direct), 'what an engine makes of the text itself');
            const line = await fleet.router.requestLine(answer.headers['x-request-id']);
            assert.equal(line.tokens, 'local');
            assert.ok(line.tokenize_ms >= 0 && line.prompt_length > 0, JSON.stringify(line));
          });
        }
      }
      const states = await fleet.settle();
      assert.equal(sum(states, 'token_mismatches'), 0);
      assert.equal(sum(states, 'with_token_ids'), sum(states, 'requests'), 'every leg came with ids');
      assert.equal(await fleet.router.metric('baton_prompts_total', { tokens: 'local' }), KINDS.length * 3);
    });
  }
}

scenario('lists of prompts and several choices each get their own ids', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const fleet = await Fleet.start(s, { sim: { tokenizer }, model: { tokenizer } });
  const alone = await Sim.start(s, { tokenizer });
  for (const body of [
    completion(['hi', 'hello there']),
    completion([[256, 33], [104, 105]]),
    completion([256, 33]),
    chat('hi'),
  ]) {
    const answer = await ask(fleet.router, body);
    assert.equal(answer.status, 200, answer.raw);
    assert.deepEqual(textOf(answer), textOf(await ask(alone, body)));
    const twice = await ask(fleet.router, { ...body, n: 2 }); // without a seed, the simulator's choices are alike
    assert.deepEqual(textOf(twice), textOf(answer).flatMap((text) => [text, text]));
  }
  const states = await fleet.settle();
  assert.equal(sum(states, 'token_mismatches'), 0);
});

scenario('an engine of an older release gets text', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const fleet = await Fleet.start(s, { sim: { tokenizer, release: '0.26.0' }, model: { tokenizer } });
  assert.equal((await ask(fleet.router, chat('hi'))).status, 200);
  assert.equal(sum(await fleet.settle(), 'with_token_ids'), 0);
  // In place of a completion's text, every release takes them.
  assert.equal((await ask(fleet.router, completion('hi'))).status, 200);
  assert.equal(sum(await fleet.settle(), 'with_token_ids'), 2);
});

scenario('send_token_ids: never sends text', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const fleet = await Fleet.start(s, { sim: { tokenizer }, model: { tokenizer, send_token_ids: 'never' } });
  for (const body of [chat('hi'), completion('hi')]) assert.equal((await ask(fleet.router, body)).status, 200);
  assert.equal(sum(await fleet.settle(), 'with_token_ids'), 0);
});

scenario('what a template refuses is told in its own words, and no worker is asked', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const fleet = await Fleet.start(s, { sim: { tokenizer }, model: { tokenizer } });
  const body = { model: 'demo', messages: [{ role: 'broken', content: 'hi' }] };
  assert.match(checkRefused(await ask(fleet.router, body), 400, 'invalid_request'), /no such role here/);
  assert.equal(sum(await fleet.states(), 'requests'), 0);
});

scenario('a prompt with an image goes on as it is', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const fleet = await Fleet.start(s, { sim: { tokenizer, multimodal: true }, model: { tokenizer } });
  const content = [
    { type: 'text', text: 'hi' },
    { type: 'image_url', image_url: { url: 'http://127.0.0.1/cat.png' } },
  ];
  const answer = await request(fleet.router.address, {
    path: CHAT,
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }] }),
  });
  assert.equal(answer.status, 200, answer.text);
  const line = await fleet.router.requestLine(answer.headers['x-request-id']);
  assert.equal(line.tokens, 'inexact');
  assert.equal(sum(await fleet.idle(), 'with_token_ids'), 0);
});

for (const engine of ['vllm', 'sglang']) {
  scenario(`${engine}: an engine is asked for the tokens where the router has no tokenizer`, async (s) => {
    const tokenizer = await writeTinyModel(s);
    const fleet = await Fleet.start(s, { engine, sim: { tokenizer }, model: { tokenize: 'engine' } });
    for (const body of [chat('hi, you'), completion('hi, you')]) {
      const answer = await ask(fleet.router, body);
      assert.equal(answer.status, 200, answer.raw);
      const line = await fleet.router.requestLine(answer.headers['x-request-id']);
      assert.equal(line.tokens, 'engine');
    }
    const states = await fleet.settle();
    assert.equal(sum(states, 'token_mismatches'), 0);
    assert.ok(sum(states, 'with_token_ids') > 0);
    assert.equal(await fleet.router.metric('baton_prompts_total', { tokens: 'engine' }), 2);
  });
}

scenario('vllm: a worker that does not render for others is asked by /tokenize, which is said once', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const fleet = await Fleet.start(s, { sim: { tokenizer, release: '0.32.0' }, model: { tokenize: 'engine' } });
  for (const text of ['hi, you', 'hi, all']) {
    const answer = await ask(fleet.router, chat(text));
    const line = await fleet.router.requestLine(answer.headers['x-request-id']);
    assert.equal(line.tokens, 'engine', line.tokens_reason);
  }
  assert.equal(sum(await fleet.settle(), 'token_mismatches'), 0);
});

scenario('POST /tokenize and /detokenize answer as vLLM does', async (s) => {
  const tokenizer = await writeTinyModel(s);
  const fleet = await Fleet.start(s, { sim: { tokenizer }, model: { tokenizer } });
  const { address } = fleet.router;
  const text = 'hi, Welt ß';
  const tokens = [ID['<s>'], 256, ...bytesOf(', Welt ß')];
  const plain = await post(address, '/tokenize', { model: 'demo', prompt: text });
  assert.deepEqual(plain, { status: 200, json: { count: tokens.length, max_model_len: 131072, tokens, token_strs: null } });
  const messages = [{ role: 'user', content: 'hi' }];
  const asked = await post(address, '/tokenize', { model: 'demo', messages });
  assert.deepEqual(asked.json.tokens, [ID['<s>'], ID['<|user|>'], 256, ID['<|end|>'], ID['<|assistant|>']]);
  const back = await post(address, '/detokenize', { model: 'demo', tokens: tokens.slice(1) });
  assert.deepEqual(back, { status: 200, json: { prompt: text } });
  // The engine itself says the same.
  for (const body of [{ model: 'demo', prompt: text }, { model: 'demo', messages }]) {
    const theirs = await post(fleet.sims[0].address, '/tokenize', body);
    const ours = await post(address, '/tokenize', body);
    assert.deepEqual(ours.json.tokens, theirs.json.tokens);
  }
});

scenario('a tokenizer with something unknown in it is refused by name, at the start and in a changed file', async (s) => {
  const good = await writeTinyModel(s);
  const strange = { ...tokenizerJson(), pre_tokenizer: { type: 'Telepathy' } };
  const bad = await writeTinyModel(s, { name: 'strange-model', tokenizer: strange });
  const sim = await Sim.start(s, { tokenizer: good });
  const models = (tokenizer) => [{ name: 'demo', tokenizer, workers: [sim.worker()] }];
  const file = s.file('strange.yaml');
  await writeFile(file, JSON.stringify({ listen: '127.0.0.1:0', models: models(bad) }));
  for (const flags of [[], ['--check']]) {
    const refused = await run(BATON, ['serve', '--config', file, ...flags]).then(assert.fail, (error) => error);
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(refused.stderr, /"demo".*Telepathy/s);
  }
  const router = await Router.start(s, { models: models(good) });
  await router.allUp();
  await router.reconfigure({ models: models(bad) });
  await until('the file was refused', () => router.process.stderr.includes('Telepathy'));
  const answer = await ask(router, chat('hi'));
  assert.equal(answer.status, 200, 'what held before goes on');
  assert.equal((await router.requestLine(answer.headers['x-request-id'])).tokens, 'local');
  await router.reconfigure({ models: [{ name: 'demo', workers: [sim.worker()] }] });
  await until('the file was taken', async () => {
    const { headers } = await ask(router, chat('hi'));
    return (await router.requestLine(headers['x-request-id'])).tokens === 'off';
  });
});

scenario('baton tokenize shows tokens to people and to programs', async (s) => {
  const model = await writeTinyModel(s);
  const text = s.file('text.txt');
  await writeFile(text, 'hi\n');
  const baton = async (...flags) => (await run(BATON, ['tokenize', '--model', model, ...flags])).stdout;
  assert.deepEqual(JSON.parse(await baton('--file', text, '--json')), { tokens: [ID['<s>'], 256, 10] });
  assert.deepEqual(JSON.parse(await baton('--file', text, '--json', '--no-special')), { tokens: [256, 10] });
  const table = await baton('--file', text);
  assert.match(table, /256 +"hi"\n/);
  assert.match(table, /10 +"\\n"\n/);
  const messages = [{ role: 'user', content: 'hi' }];
  for (const [name, content] of [['list', messages], ['body', { model: 'x', messages }]]) {
    const file = s.file(`${name}.json`);
    await writeFile(file, JSON.stringify(content));
    const tokens = [ID['<s>'], ID['<|user|>'], 256, ID['<|end|>'], ID['<|assistant|>']];
    assert.deepEqual(JSON.parse(await baton('--chat', file, '--json')), { tokens });
    assert.equal(await baton('--chat', file, '--render'), '<s><|user|>hi<|end|><|assistant|>');
  }
  await writeFile(text, Buffer.from([0x68, 0xff, 0x69]));
  const refused = await run(BATON, ['tokenize', '--model', model, '--file', text]).then(assert.fail, (error) => error);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /UTF-8/);
  const missing = await run(BATON, ['tokenize', '--model', join(model, 'nowhere'), '--file', text]).then(assert.fail, (error) => error);
  assert.match(missing.stderr, /nowhere/);
});
