// SPDX-License-Identifier: Apache-2.0
// Chat templates, to the byte as Python's Jinja2 renders them with the settings of the engines.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Template } from '@huggingface/jinja';
import { escaped } from './support/compare.mjs';
import { CONVERSATIONS } from './support/conversations.mjs';
import { configOf, contentOf } from './support/models.mjs';
import { run } from './support/program.mjs';
import { TEMPLATES, WRONG } from './support/templates.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const MODELS = ['llama3', 'llama3_1', 'llama3_2', 'qwen2_5', 'qwen3', 'deepseek_v3', 'gemma3', 'mistral_nemo'];
const NOW = 1_709_987_696;  // 9 March 2024, 12:34:56 in UTC
const SHOWN = 5;
// Debian's own: another Python in the PATH need not have Jinja2.
const PYTHON = fs.existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';

const lines = (answer) => answer.out.toString().trimEnd().split('\n').map((line) => JSON.parse(line));

async function bothRender(cases, timeZone = 'UTC') {
  const input = cases.map(({ template, variables }) =>
    JSON.stringify({ template, now: NOW, variables: typeof variables === 'string' ? variables : JSON.stringify(variables) }) + '\n').join('');
  const env = { TZ: timeZone };
  const [expected, actual] = await Promise.all([
    run(PYTHON, ['-B', path.join(HERE, 'render.py')], input, env),
    run(process.env.RENDER_LINES, [], input, env),
  ]);
  assert.equal(expected.code, 0, expected.err);
  assert.equal(actual.code, 0, actual.err);
  const [theirs, ours] = [lines(expected), lines(actual)];
  assert.equal(theirs.length, cases.length);
  assert.equal(ours.length, cases.length);
  return cases.map((one, i) => ({ ...one, expected: theirs[i], actual: ours[i] }));
}

// Text for text; where the template raises, its message must be quoted; where Python fails, so must we.
function right({ expected, actual }) {
  if ('text' in expected) return actual.text === expected.text;
  return 'error' in actual && (!expected.raised || actual.error.includes(expected.error));
}

function difference({ name, expected, actual }) {
  const [a, b] = [expected, actual].map((answer) => ('text' in answer ? answer.text : `error: ${answer.error}`));
  let at = 0;
  while (at < a.length && a[at] === b[at]) ++at;
  const from = Math.max(0, at - 60);
  const part = (text) => escaped(text.slice(from, at + 120));
  return `  ${name}, from character ${at}\n    expected ${part(a)}\n    got      ${part(b)}`;
}

function allRight(results) {
  const wrong = results.filter((one) => !right(one));
  assert.equal(wrong.length, 0, `${wrong.length} of ${results.length} differ:\n${wrong.slice(0, SHOWN).map(difference).join('\n')}`);
}

function casesOf(name, template, tokens) {
  return Object.entries(CONVERSATIONS).flatMap(([what, conversation]) => [true, false, undefined].map((add_generation_prompt) => ({
    name: `${name}: ${what}${add_generation_prompt ? ', and the answer begun' : ''}`,
    template,
    variables: { ...tokens, ...conversation, ...(add_generation_prompt === undefined ? {} : { add_generation_prompt }) },
  })));
}

function tokensOf(config) {
  const named = Object.entries(config).filter(([key, token]) => /^(bos|eos|unk|pad)_token$/u.test(key) && token !== null);
  return Object.fromEntries(named.map(([key, token]) => [key, contentOf(token)]));
}

for (const model of MODELS) {
  test(`the template of ${model}`, async () => {
    const config = configOf(model);
    allRight(await bothRender(casesOf(model, config.chat_template, tokensOf(config))));
  });
}

for (const [name, template] of Object.entries(TEMPLATES)) {
  test(`a template with ${name}`, async () => {
    const results = await bothRender(casesOf(name, template, { bos_token: '<s>', eos_token: '</s>' }));
    assert.ok(results.some(({ expected }) => 'text' in expected), `Jinja renders none: ${results[0].expected.error}`);
    allRight(results);
  });
}

test('dates are those of the time zone', async () => {
  const template = TEMPLATES['dates and documents'];
  for (const zone of ['Asia/Kolkata', 'America/St_Johns', 'Pacific/Auckland']) {
    allRight(await bothRender([{ name: zone, template, variables: { messages: [] } }], zone));
  }
});

test('numbers keep the form in which they were sent', async () => {
  const variables = '{"messages": [{"role": "user", "content": "x", "n": [1, 1.0, -0.0, 1e5, 1E400, 123456789012345678901234567890, 0.1, 1e-7, 1.5e300, 100000000000000000.0]}]}';
  allRight(await bothRender([{ name: 'numbers', template: '{{ messages[0].n }} {{ messages[0].n | tojson }} {{ messages[0].n | join(" ") }}', variables }]));
});

test('what Jinja refuses is refused, and a raised message quoted', async () => {
  const variables = { messages: [{ role: 'user', content: 'x' }] };
  const results = await bothRender(WRONG.map((template) => ({ name: template, template, variables })));
  for (const { name, expected } of results) assert.ok('error' in expected, `Jinja renders ${name}: ${expected.text}`);
  allRight(results);
});

test('the other library renders the packaged templates alike', async () => {
  const cases = MODELS.flatMap((model) => {
    const config = configOf(model);
    return casesOf(model, config.chat_template, tokensOf(config));
  });
  const results = await bothRender(cases);
  let compared = 0;
  const wrong = results.filter(({ template, variables, expected, actual }) => {
    if (!('text' in expected)) return false;
    let text;
    try {
      // Its own strftime_now asks the clock, so the date is given.
      text = new Template(template).render({ date_string: '09 Mar 2024', ...variables });
    } catch {
      return false;  // it knows less of the language
    }
    if (text !== expected.text) return false;  // the libraries do not agree; the engines use Python's
    ++compared;
    return actual.text !== text;
  });
  assert.deepEqual(wrong.map(difference), []);
  assert.ok(compared > 0.6 * results.length, `only ${compared} of ${results.length} could be compared`);
});
