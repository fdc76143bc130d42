// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "loadgen/report.h"

namespace baton::loadgen {

// What is drawn of a result: reads the data that the page holds.
std::string_view report_script() {
  return R"JS(
const runs = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
const many = runs.length > 1;
const add = (html) => page.insertAdjacentHTML('beforeend', html);
const get = (object, path) => path.split('.').reduce((inner, key) => (inner === null || inner === undefined ? inner : inner[key]), object);
function section(title) {
  add(`<h2>${escape(title)}</h2><div class="plots"></div>`);
  return page.lastElementChild;
}

// ---- the table: [name, where it stands, which way is better, factor]
const ROWS = [
  ['Requests'],
  ['completed', 'summary.requests.completed'], ['refused', 'summary.requests.refused', -1],
  ['failed', 'summary.requests.failed', -1], ['cut at the end', 'summary.requests.cut'], ['not sent', 'summary.requests.not_sent', -1],
  ['Throughput'],
  ['requests/s', 'summary.requests_per_s', 1], ['output tokens/s', 'summary.output_tokens_per_s', 1],
  ['prompt tokens/s', 'summary.prompt_tokens_per_s', 1],
  ['goodput, requests/s', 'summary.goodput.requests_per_s', 1], ['met the target, %', 'summary.goodput.share', 1, 100],
  ['cache hits, % of prompt tokens', 'summary.hit_rate', 1, 100],
  ['Time to first token, ms'],
  ['p50', 'summary.ttft_ms.p50', -1], ['p90', 'summary.ttft_ms.p90', -1], ['p99', 'summary.ttft_ms.p99', -1], ['mean', 'summary.ttft_ms.mean', -1],
  ['Between tokens, ms'],
  ['p50', 'summary.itl_ms.p50', -1], ['p90', 'summary.itl_ms.p90', -1], ['p99', 'summary.itl_ms.p99', -1], ['mean', 'summary.itl_ms.mean', -1],
  ['Whole answer, ms'],
  ['p50', 'summary.total_ms.p50', -1], ['p99', 'summary.total_ms.p99', -1],
  ['Refusals, ms'],
  ['p50', 'summary.refused_ms.p50', -1], ['p99', 'summary.refused_ms.p99', -1],
  ['Busiest worker / average worker'],
  ['prefill: tokens computed', 'balance.prefill.computed_tokens.max_over_mean', -1],
  ['decode: tokens made', 'balance.decode.output_tokens.max_over_mean', -1],
  ['prefill: requests', 'balance.prefill.requests.max_over_mean', -1],
  ['decode: requests', 'balance.decode.requests.max_over_mean', -1],
];
function table() {
  let html = `<div class="scroll"><table><tr><th></th>${runs.map((run) => `<th>${escape(run.label)}</th>`).join('')}</tr>`, part = '';
  for (const [name, path, better = 0, factor = 1] of ROWS) {
    if (!path) {
      part = `<tr class="part"><td colspan="${runs.length + 1}">${escape(name)}</td></tr>`;
      continue;
    }
    const values = runs.map((run) => get(run, path));
    if (!values.some(isNumber)) continue;
    const known = values.filter(isNumber), best = better > 0 ? Math.max(...known) : Math.min(...known);
    const distinct = many && better !== 0 && known.some((value) => value !== best);
    html += part + `<tr><td>${escape(name)}</td>` + values.map((value) =>
      `<td class="${distinct && value === best ? 'best' : ''}">${isNumber(value) ? short(value * factor) : '–'}</td>`).join('') + '</tr>';
    part = '';
  }
  add(html + '</table></div>');
}

// ---- over time
const overTime = (run, key, scale = 1) => run.series.points.map((point) => [point.t, isNumber(point[key]) ? point[key] * scale : null]);
const perSecond = (run, key) => overTime(run, key, 1 / run.series.width_s);
const pair = (key) => runs.flatMap((run, i) => [
  { name: many ? `${run.label} p50` : 'p50', colour: colour(i), points: overTime(run, `${key}_p50`) },
  { name: many ? `${run.label} p99` : 'p99', colour: colour(many ? i : 1), dash: many, points: overTime(run, `${key}_p99`) },
]);
function times() {
  const box = section('Over time');
  box.append(plot('Time to first token', 'ms', pair('ttft')));
  box.append(plot('Between tokens', 'ms', pair('itl')));
  box.append(plot('Output', 'tokens/s', runs.map((run, i) => ({ name: run.label, colour: colour(i), points: perSecond(run, 'output_tokens') }))));
  const kinds = many ? ['completed'] : ['sent', 'completed', 'refused', 'failed'];
  const requests = runs.flatMap((run, i) => kinds.map((kind, k) => ({
    name: many ? run.label : kind, colour: colour(many ? i : k), points: perSecond(run, kind) })));
  box.append(plot(many ? 'Requests completed' : 'Requests', '1/s', requests));
  box.append(plot('Cache hits, as answers told', '% of prompt tokens',
    runs.map((run, i) => ({ name: run.label, colour: colour(i), points: overTime(run, 'hit_rate', 100) })), { yMax: 100 }));
  const refused = runs.map((run, i) => ({ name: run.label, colour: colour(i), points: perSecond(run, 'refused') }));
  if (many && runs.some((run) => get(run, 'summary.requests.refused') > 0)) box.append(plot('Requests refused', '1/s', refused));
}

// ---- distributions
function shares(histogram) {
  const total = histogram.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  return histogram.map(([below, count]) => [below, ((seen += count) / total) * 100]);
}
function distributions() {
  const box = section('Distribution');
  for (const [title, key] of [['Time to first token', 'ttft_ms'], ['Between tokens', 'itl_ms'], ['Whole answer', 'total_ms']]) {
    const curves = runs.map((run, i) => ({ name: run.label, colour: colour(i), points: shares(run.histograms[key]) }));
    box.append(plot(title, '% that took at most so long', curves, { logX: true, xUnit: 'ms', yMax: 100, xName: (x) => `${short(x)} ms` }));
  }
}

// ---- workers
function workers() {
  if (!runs.some((run) => run.workers.length > 0 || run.fleet)) return;
  const box = section('Workers');
  runs.forEach((run, i) => {
    for (const [role, field, unit] of [['prefill', 'computed_tokens', 'prompt tokens computed'], ['decode', 'output_tokens', 'tokens made']]) {
      const list = run.workers.filter((worker) => worker.role === role);
      if (list.length === 0) continue;
      const even = get(run, `balance.${role}.${field}.max_over_mean`);
      box.append(bars(`${many ? `${run.label}: ` : ''}${role} workers`, `${unit}; max/mean ${short(even)}`,
        list.slice(0, 64).map((worker) => ({ name: worker.name, value: worker[field], colour: colour(i) }))));
    }
  });
  runs.forEach((run) => fleet(box, run));
}
function fleet(box, run) {
  if (!run.fleet) return;
  const named = (title) => (many ? `${run.label}: ${title}` : title);
  for (const [gauge, list] of Object.entries(run.fleet.gauges)) {
    for (const role of new Set(list.map((worker) => worker.role))) {
      const curves = list.filter((worker) => worker.role === role).slice(0, 16)
        .map((worker, i) => ({ name: worker.name, colour: colour(i), points: run.fleet.t.map((t, at) => [t, worker.values[at]]) }));
      box.append(plot(named(`${role} ${gauge.replaceAll('_', ' ')}`), 'as the router told', curves));
    }
  }
  const hits = [{ name: 'router', colour: colour(0), points: run.fleet.t.map((t, at) => [t, isNumber(run.fleet.hit_rate[at]) ? run.fleet.hit_rate[at] * 100 : null]) }];
  if (hits[0].points.some(([, y]) => isNumber(y))) box.append(plot(named('cache hits, as engines told the router'), '% of prompt tokens', hits, { yMax: 100 }));
}

// ---- what was asked for
function settings() {
  const flat = (object, prefix = '') => Object.entries(object).flatMap(([key, value]) =>
    value !== null && typeof value === 'object' ? flat(value, `${prefix}${key}.`) : [[prefix + key, value]]);
  const all = runs.map((run) => new Map([['started_at', run.started_at], ...flat(run.configuration)]));
  const keys = [...new Set(all.flatMap((one) => [...one.keys()]))];
  const cell = (value) => escape(value === null || value === undefined ? '–' : value);
  add(`<h2>Configuration</h2><div class="scroll"><table><tr><th></th>${runs.map((run) => `<th>${escape(run.label)}</th>`).join('')}</tr>` +
    keys.map((key) => `<tr><td>${escape(key)}</td>${all.map((one) => `<td>${cell(one.get(key))}</td>`).join('')}</tr>`).join('') + '</table></div>');
}

document.getElementById('about').textContent = many
  ? `${runs.length} runs side by side; the best of a row is bold`
  : `${runs[0].label}: ${runs[0].configuration.model} at ${runs[0].configuration.url}, ${runs[0].started_at}`;
table();
times();
distributions();
workers();
settings();
add('<footer>Made by baton bench. Tokens over time are counted as they came, an event as one.</footer>');
)JS";
}

}  // namespace baton::loadgen
