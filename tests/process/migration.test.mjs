// SPDX-License-Identifier: Apache-2.0
// A worker that fails in the middle of a stream: where another one can go on, the client sees one unbroken, exact
// answer; where that would be wrong it is told, and gets no [DONE].
import assert from 'node:assert/strict';

import { Call, readStream } from './support/call.mjs';
import { Fleet } from './support/fleet.mjs';
import { inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const MIGRATION = 3;
const USAGE = { stream_options: { include_usage: true } };
const TIMEOUTS = { connect: '1s', first_byte: '20s', idle: '20s' };

const chat = (text, more = {}) => ({ model: 'demo', messages: [{ role: 'user', content: text }], stream: true, ...more });
const completion = (text, more = {}) => ({ model: 'demo', prompt: text, stream: true, ...more });

function checkExact(answer, body, limits) {
  assert.equal(answer.status, 200, answer.text);
  assert.ok(answer.complete, 'the answer is whole');
  const stream = readStream(answer.text);
  const expected = expectedAnswer(body, limits);
  const [{ text, finish, ids }] = expected.choices;
  assert.deepEqual(stream.errors, []);
  assert.equal(stream.done, 1, 'one [DONE]');
  assert.equal(stream.choices.length, 1);
  const [choice] = stream.choices;
  assert.equal(choice.text, text);
  assert.deepEqual(choice.finishes, [finish], 'one finish reason');
  assert.equal(choice.roles, body.messages ? 1 : 0, 'it is said once who speaks');
  assert.equal(stream.ids.size, 1, `one id: ${[...stream.ids]}`);
  assert.equal(stream.created.size, 1, 'one time of creation');
  if (body.return_token_ids) assert.deepEqual(choice.tokenIds, ids);
  else assert.ok(!answer.text.includes('token_ids'), 'nothing that the client did not ask for');
  checkUsage(stream.usages, body, expected);
}

function checkUsage(usages, body, { promptTokens, completionTokens }) {
  if (!body.stream_options) return assert.equal(usages.length, 0, 'no usage unless asked for');
  assert.equal(usages.length, 1, 'usage comes once');
  const [usage] = usages;
  assert.equal(usage.prompt_tokens, promptTokens);
  assert.equal(usage.completion_tokens, completionTokens);
  assert.equal(usage.total_tokens, promptTokens + completionTokens);
}

/** The stream ended with an error, and what came before it is right. */
function checkRefused(answer, body, code = 'stream_broken') {
  assert.equal(answer.status, 200, answer.text);
  assert.ok(answer.complete, 'the stream has an end');
  const stream = readStream(answer.text);
  assert.equal(stream.done, 0, `no [DONE]: ${answer.text}`);
  assert.deepEqual(stream.errors.map((error) => error.code), [code], answer.text);
  assert.ok(stream.chunks.length > 0, 'it failed after tokens had been sent');
  expectedAnswer(body).choices.forEach(({ text }, i) => {
    if (text !== undefined) assert.ok(text.startsWith(stream.choices[i]?.text ?? ''), 'what was streamed is right');
  });
}

const requestLines = (router) =>
  router.process.stderr
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line))
    .filter((line) => line.event === 'request');

/** The line of each request's end, by id. */
async function linesOf(router, ids) {
  return until('a log line of every request', () => {
    const lines = new Map(requestLines(router).map((line) => [line.id, line]));
    return ids.every((id) => lines.has(id)) && lines;
  });
}

async function kill(sim) {
  sim.process.expectedExit = undefined;
  sim.process.signal('SIGKILL');
  await sim.process.ended();
}

const over = (calls) => Promise.all(calls.map((call) => call.ended));

/**
 * Kills one worker after the other while all streams run; one stays. Returns once all streams have ended. A decode worker that ends
 * between its 200 and its first token leaves in doubt who has the blocks, so each stream has tokens of its new worker before that
 * is killed. What the last worker sent has reached this process once the router has legs elsewhere for all streams.
 */
async function killUnder(fleet, calls, victims) {
  const running = () => calls.filter((call) => !call.over).length;
  const dead = [];
  const legs = async () =>
    (await fleet.router.metrics())
      .filter(({ name, labels }) => name === 'baton_worker_in_flight' && !dead.includes(labels.worker))
      .reduce((sum, { value }) => sum + value, 0);
  for (const victim of victims) {
    await until('every stream has a living worker', async () => (await legs()) === running());
    const wanted = calls.map((call) => call.events + 8);
    await until(`${victim.process.name} can be killed`, () => calls.every((call, i) => call.over || call.events >= wanted[i]));
    await kill(victim);
    dead.push(victim.address);
  }
  return inTime('all streams end', over(calls), 120_000);
}

async function checkMigrations(fleet, ids, atLeast) {
  const lines = await linesOf(fleet.router, ids);
  let sum = 0;
  for (const id of ids) {
    const { outcome, status, migrations = 0 } = lines.get(id);
    assert.deepEqual({ outcome, status }, { outcome: 'ok', status: 200 });
    assert.ok(migrations <= MIGRATION);
    for (const [key, value] of Object.entries(lines.get(id))) assert.ok(!key.endsWith('_ms') || value >= 0, `${key} is ${value}`);
    sum += migrations;
  }
  assert.ok(sum >= atLeast, `${sum} migrations, expected at least ${atLeast}`);
  assert.equal(await fleet.router.metric('baton_migrations_total'), sum, 'metric and log agree');
  return sum;
}

/** Waits until the living are empty; nothing may have had to wait for its lease. */
async function settle(fleet, dead) {
  fleet.sims = fleet.sims.filter((sim) => !dead.includes(sim));
  await fleet.settle();
}

const LONG = { minOutput: 120, maxOutput: 160 };

/** Every kind of stream that can be continued, in turn. */
function streamNumber(i, kinds) {
  const text = `Number ${i}: go on, ${'and on, '.repeat(i % 23)}please`;
  const more = { ...(i % 3 === 0 ? USAGE : {}), ...(i % 5 === 0 ? { return_token_ids: true } : {}) };
  const make = kinds[i % kinds.length];
  if (make === completion) return completion(text, { ...more, max_tokens: i % 4 === 1 ? 100 : 1000 });
  return chat(text, { ...more, ...(i % 4 === 0 ? { max_completion_tokens: 90 } : {}) });
}

function killing(name, { streams, kinds, victims: role, ...options }) {
  scenario(name, async (s) => {
    const fleet = await Fleet.start(s, {
      sim: { decodeMs: 20, ...LONG },
      model: { migration: MIGRATION },
      config: { timeouts: TIMEOUTS, threads: 2 },
      ...options,
    });
    const victims = fleet.of(role).slice(1, 1 + MIGRATION);
    const ids = Array.from({ length: streams }, (_, i) => `stream-${i}`);
    const calls = ids.map((id, i) => new Call(fleet.router.address, streamNumber(i, kinds), { 'x-request-id': id }));
    const answers = await killUnder(fleet, calls, victims);
    await s.step(`${streams} of ${streams} streams are exact`, () => {
      const wrong = [];
      answers.forEach((answer, i) => {
        try {
          checkExact(answer, calls[i].body, LONG);
        } catch (error) {
          wrong.push(`${ids[i]}: ${error.message}`);
        }
      });
      assert.deepEqual(wrong, []);
    });
    // The first to die had its share of all streams; the later ones what was left besides.
    await s.step('metric and log tell of it', () => checkMigrations(fleet, ids, streams / (victims.length + 2)));
    await s.step('nothing is left in the fleet', () => settle(fleet, victims));
  });
}

killing('vllm: 200 streams survive the death of three of four decode workers', {
  streams: 200, kinds: [chat, completion], victims: 'decode', counts: { prefill: 2, decode: 4 },
});
killing('vllm aggregated: streams survive the death of two of three workers', {
  streams: 60, kinds: [chat, completion], victims: 'aggregated', counts: { aggregated: 3 },
});
killing('sglang: completions survive the death of two of three decode workers', {
  engine: 'sglang', streams: 60, kinds: [completion], victims: 'decode', counts: { prefill: 2, decode: 3 },
});
killing('sglang aggregated: completions survive the death of a worker', {
  engine: 'sglang', streams: 40, kinds: [completion], victims: 'aggregated', counts: { aggregated: 2 },
});

// Workers that fail this often would be ejected, and the worker of a request would be unknown.
const NOBODY_EJECTED = { failures: 1000 };

const ask = (fleet, body, headers) => inTime('an answer', new Call(fleet.router.address, body, headers).ended);

/** Each decode worker fails once, so that it does not matter which one is chosen. */
async function strike(fleet, fault) {
  for (const sim of fleet.of('decode')) await sim.fault({ count: 1, ...fault });
}

async function clear(fleet) {
  for (const sim of fleet.sims) await sim.clearFaults();
}

/** One of the decode workers fails once; asks, in turn of the workers, until that has happened. */
async function askStruck(fleet, fault, body) {
  const decodes = fleet.of('decode');
  await decodes[0].fault({ count: 1, ...fault });
  for (let i = 0; i < decodes.length; ++i) checkExact(await ask(fleet, body), body);
  assert.deepEqual(await decodes[0].faults(), [], 'the fault has struck');
}

scenario('vllm: a stream may break at any token', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 1, decode: 2 },
    model: { migration: MIGRATION },
    config: { timeouts: { ...TIMEOUTS, first_byte: '3s', idle: '3s' }, threads: 1, health: NOBODY_EJECTED },
  });
  const bodies = {
    'chat with usage': chat('Break me anywhere', { ...USAGE, max_completion_tokens: 12 }),
    'chat that ends by itself': chat('Break me anywhere too'),
    'completion with token ids': completion('Break this one', { return_token_ids: true, ...USAGE }),
  };
  for (const [name, body] of Object.entries(bodies)) {
    await s.step(name, async () => {
      const { tokens } = expectedAnswer(body).choices[0];
      for (let at = 0; at < tokens; ++at) {
        await askStruck(fleet, { kind: 'cut', after_tokens: at }, body);
      }
      // Before the first token the client may know already who speaks, and by what id.
      for (const kind of ['malformed', 'error_event', 'hang_stream']) await askStruck(fleet, { kind, after_tokens: 0 }, body);
    });
  }
  await s.step('nothing is left in the fleet', () => fleet.idle());
});

scenario('vllm: however a stream breaks, it goes on', async (s) => {
  const fleet = await Fleet.start(s, {
    counts: { prefill: 2, decode: 2 },
    model: { migration: MIGRATION },
    config: { timeouts: { ...TIMEOUTS, idle: '1s' }, threads: 1, health: NOBODY_EJECTED },
  });
  for (const kind of ['cut', 'hang_stream', 'malformed', 'error_event']) {
    await s.step(kind, async () => {
      await askStruck(fleet, { kind, after_tokens: 5 }, chat(`Struck by ${kind}`, USAGE));
    });
  }
  await s.step('while a prefill worker fails, too', async () => {
    const [first] = fleet.of('prefill');
    await first.fault({ kind: 'status', status: 500 });
    await askStruck(fleet, { kind: 'cut', after_tokens: 5 }, completion('Struck twice', USAGE));
    await clear(fleet);
  });
  await s.step('but not more often than is allowed', async () => {
    const body = chat('Struck too often', USAGE);
    for (const sim of fleet.of('decode')) await sim.fault({ kind: 'cut', after_tokens: 2 });
    checkRefused(await ask(fleet, body), body);
    await clear(fleet);
  });
  await s.step('nothing is left in the fleet', () => fleet.idle());
});

const TOOLS = [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }];

/** Streams that no worker could continue, and why. */
const REFUSED = {
  'stop strings': chat('Stop somewhere', { stop: ['never said'] }),
  logprobs: chat('How sure are you?', { logprobs: true }),
  'logprobs of a completion': completion('How sure are you?', { logprobs: 1 }),
  'a seed': chat('By chance', { seed: 7 }),
  'a tool call in progress': chat('Look it up', { tools: TOOLS }),
  // The branches of a fan-out tell themselves apart by their seeds only.
  'several choices': chat('Twice, please', { n: 2, seed: 5 }),
  'several prompts': completion(['The first', 'The second']),
  'guided decoding': chat('As JSON', { response_format: { type: 'json_object' } }),
  penalties: chat('Without repetition', { presence_penalty: 0.5 }),
};

function refusing(name, { bodies, ...options }) {
  scenario(name, async (s) => {
    const fleet = await Fleet.start(s, {
      counts: { prefill: 1, decode: 2 }, model: { migration: MIGRATION }, config: { timeouts: TIMEOUTS, threads: 1, health: NOBODY_EJECTED },
      ...options,
    });
    for (const [why, body] of Object.entries(bodies)) {
      await s.step(why, async () => {
        await strike(fleet, { kind: 'cut', after_tokens: 4 });
        const id = `refused-${why.replaceAll(' ', '-')}`;
        const answer = await ask(fleet, body, { 'x-request-id': id });
        checkRefused(answer, body);
        const line = (await linesOf(fleet.router, [id])).get(id);
        assert.equal(line.outcome, 'stream_broken');
        assert.equal(line.migrations, undefined);
        assert.ok(line.decode_ms >= 0, `decode_ms is ${line.decode_ms}`);
        await clear(fleet);
      });
    }
    await s.step('nothing was migrated, nothing is left', async () => {
      assert.equal(await fleet.router.metric('baton_migrations_total'), 0);
      await fleet.idle();
    });
  });
}

const PLAIN = { chat: chat('As plain as can be', USAGE), completion: completion('As plain as can be', USAGE) };

const WITH_TOOLS = { toolCallParser: 'hermes', enableAutoToolChoice: true };

refusing('vllm: where going on would be wrong the stream ends with an error', { bodies: REFUSED, sim: WITH_TOOLS });
refusing('vllm: without migration the stream ends with an error', { model: {}, bodies: PLAIN });
refusing('sglang: a chat, whose token ids it does not stream, ends with an error', { engine: 'sglang', bodies: { chat: PLAIN.chat } });
refusing('trtllm: a stream, which has no token ids, ends with an error', { engine: 'trtllm', bodies: PLAIN });
