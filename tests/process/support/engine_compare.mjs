// SPDX-License-Identifier: Apache-2.0
// Holds a simulated engine against recorded answers of the real one: names and types of all fields, values where they are known.
import assert from 'node:assert/strict';

import { ask, normalise, readCases } from './engine_record.mjs';
import { Sim } from './fleet.mjs';
import { scenario } from './scenario.mjs';

const isMap = (path) => /prompt_logprobs\[\]$/.test(path) || /\.top_logprobs\[\]$/.test(path);

/** Names and types, all the way down; of a list, those of its elements, each once. */
export function shapeOf(value, path = '') {
  if (value === null) return 'null';
  if (Array.isArray(value)) {
    const inside = value.map((one) => JSON.stringify(shapeOf(one, `${path}[]`)));
    return { list: [...new Set(inside)].sort() };
  }
  if (typeof value !== 'object') return typeof value;
  // Keyed by tokens, unless it is a chat's list of tokens.
  if (isMap(path) && value.token === undefined) {
    return { map: [...new Set(Object.values(value).map((one) => JSON.stringify(shapeOf(one, `${path}.*`))))].sort() };
  }
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, shapeOf(value[name], `${path}.${name}`)]));
}

const eventShapes = (events) => [...new Set(events.map((one) => JSON.stringify(shapeOf(one))))].sort();

/** Known values by where they are. */
function valuesOf(value, known, path = '') {
  if (value === null || typeof value !== 'object') return {};
  const found = Object.entries(value).map(([name, one]) => {
    const here = `${path}.${name}`;
    return known.has(name) && (one === null || typeof one !== 'object') ? { [here]: one } : valuesOf(one, known, here);
  });
  return Object.assign({}, ...found);
}

function compareMetrics(given, recorded, { onlyMetrics, someLabels = new Set() }) {
  for (const [family, { type, labels }] of Object.entries(recorded)) {
    if (onlyMetrics && !onlyMetrics.has(family) && !(family in given)) continue;
    if (someLabels.has(family)) {
      for (const label of given[family].labels) assert.ok(labels.includes(label), `${family} ${label}`);
    } else {
      assert.deepEqual(given[family], { type, labels }, family);
    }
  }
  assert.deepEqual(Object.keys(given).filter((family) => !(family in recorded)), [], 'metrics that the engine does not have');
}

/** One answer against the recorded one. `rules` are those of `compareWithRecorded`. */
function compare(name, { status, headers, answer, events, metrics, text }, given, rules) {
  const { known, otherWords, words, errorOf } = rules;
  assert.equal(given.status, status, JSON.stringify(given.answer ?? given.text));
  assert.deepEqual(Object.keys(given.headers).sort(), Object.keys(headers).sort(), 'headers');
  if (events) assert.deepEqual(eventShapes(given.events), eventShapes(events));
  if (metrics) compareMetrics(given.metrics, metrics, rules);
  if (text !== undefined) assert.equal(given.text, text);
  if (!answer) return;
  assert.deepEqual(shapeOf(given.answer), shapeOf(answer));
  if (otherWords.has(name)) {
    assert.equal(errorOf(given.answer).type, errorOf(answer).type);
  } else {
    assert.deepEqual(valuesOf({ ...given.answer, headers: given.headers }, known), valuesOf({ ...answer, headers }, known));
    assert.equal(words(errorOf(given.answer)?.message), words(errorOf(answer)?.message));
  }
}

/** A simulator, or both sides of a pair: what answers the cases of a file. */
async function startFor(s, cases, flags) {
  if (!cases[0].pair) return [await Sim.start(s, flags)];
  const ready = s.file('bootstrap');
  const prefill = await Sim.start(s, { ...flags, role: 'prefill', bootstrapReadyFile: ready });
  const bootstrap = await prefill.process.address(ready);
  const port = Number(bootstrap.slice(bootstrap.lastIndexOf(':') + 1));
  for (const { body } of cases) body.bootstrap_port = port;
  return [prefill, await Sim.start(s, { ...flags, role: 'decode' })];
}

/**
 * A scenario for each file of recorded answers: `sim` starts the simulator, with `servers[file]` on top. The rules:
 * `known`, fields whose values are the same everywhere; `otherWords`, cases whose error is told in other words;
 * `onlyMetrics`, families that must be there, where not all need be; `someLabels`, those with labels left out;
 * `words`, an error's text without what is the server's own; `errorOf`, the error in an answer. `left` are cases that are not asked at all, by file.
 */
export async function compareWithRecorded(title, { fixtures, sim, servers = {}, left = {}, ...rules }) {
  const all = await readCases(fixtures);
  for (const file of new Set(all.map((one) => one.file))) {
    const cases = all.filter((one) => one.file === file && !left[file]?.has(one.name));
    scenario(`${title}: ${file}`, async (s) => {
      const simulated = await startFor(s, cases, { ...sim, ...servers[file] });
      for (const one of cases) {
        await s.step(one.name, async () => {
          const body = one.body && { ...one.body, ...one.instead };
          const asked = { ...one, headers: one.sent, body };
          const given = await Promise.all(simulated.map(async ({ address }) => normalise(await ask(address, asked))));
          (one.pair ? [one.prefill, one.decode] : [one]).forEach((recorded, i) => compare(one.name, recorded, given[i], rules));
        });
      }
    });
  }
}
