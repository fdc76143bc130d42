// SPDX-License-Identifier: Apache-2.0
// Draws results: reads the data that the page holds.
const runs = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
const many = runs.length > 1;
const add = (html) => page.insertAdjacentHTML('beforeend', html);
const get = (object, path) => path.split('.').reduce((inner, key) => (inner === null || inner === undefined ? inner : inner[key]), object);
function plots() {
  add('<div class="plots"></div>');
  return page.lastElementChild;
}
function section(title) {
  add(`<h2>${escape(title)}</h2>`);
  return plots();
}

// ---- the figures: a table for each part, of rows [name, where it stands, which way is better, factor]
const TABLES = {
  Requests: [
    ['completed', 'summary.requests.completed'], ['refused', 'summary.requests.refused', -1],
    ['failed', 'summary.requests.failed', -1], ['cut at the end', 'summary.requests.cut'], ['not sent', 'summary.requests.not_sent', -1],
    ['warm-up, not measured', 'summary.requests.warmup'],
  ],
  Throughput: [
    ['requests/s', 'summary.requests_per_s', 1], ['output tokens/s', 'summary.output_tokens_per_s', 1],
    ['prompt tokens/s', 'summary.prompt_tokens_per_s', 1],
    ['goodput, requests/s', 'summary.goodput.requests_per_s', 1], ['met the target, %', 'summary.goodput.share', 1, 100],
    ['cache hits, % of prompt tokens', 'summary.hit_rate', 1, 100],
  ],
  'Time to first token, ms': [
    ['p50', 'summary.ttft_ms.p50', -1], ['p90', 'summary.ttft_ms.p90', -1], ['p99', 'summary.ttft_ms.p99', -1], ['mean', 'summary.ttft_ms.mean', -1],
  ],
  'Between tokens, ms': [
    ['p50', 'summary.itl_ms.p50', -1], ['p90', 'summary.itl_ms.p90', -1], ['p99', 'summary.itl_ms.p99', -1], ['mean', 'summary.itl_ms.mean', -1],
  ],
  'Whole answer, ms': [['p50', 'summary.total_ms.p50', -1], ['p99', 'summary.total_ms.p99', -1]],
  'Refusals, ms': [['p50', 'summary.refused_ms.p50', -1], ['p99', 'summary.refused_ms.p99', -1]],
  'Busiest worker / average worker': [
    ['prefill: tokens computed', 'balance.prefill.computed_tokens.max_over_mean', -1],
    ['decode: tokens made', 'balance.decode.output_tokens.max_over_mean', -1],
    ['prefill: requests', 'balance.prefill.requests.max_over_mean', -1],
    ['decode: requests', 'balance.decode.requests.max_over_mean', -1],
  ],
};
const labels = () => `<tr><th></th>${runs.map((run) => `<th>${escape(run.label)}</th>`).join('')}</tr>`;
function row([name, path, better = 0, factor = 1]) {
  const values = runs.map((run) => get(run, path));
  if (!values.some(isNumber)) return '';
  const known = values.filter(isNumber), best = better > 0 ? Math.max(...known) : Math.min(...known);
  const distinct = many && better !== 0 && known.some((value) => value !== best);
  const cells = values.map((value) =>
    `<td class="${distinct && value === best ? 'best' : ''}">${isNumber(value) ? short(value * factor) : '–'}</td>`);
  return `<tr><td>${escape(name)}</td>${cells.join('')}</tr>`;
}
function tables() {
  let html = '';
  for (const [title, rows] of Object.entries(TABLES)) {
    const filled = rows.map(row).join('');
    if (filled) html += `<div class="scroll"><table><caption>${escape(title)}</caption>${many ? labels() : ''}${filled}</table></div>`;
  }
  add(`<div class="tables" style="--most:${300 + 130 * runs.length}px">${html}</div>`);
}

// ---- over time
const warmupOf = (run) => (get(run, 'summary.requests.warmup') > 0 ? get(run, 'summary.measured_from_s') : 0);
const marks = (list) => list
  .map((run) => ({ until: warmupOf(run), colour: many && list.length > 1 ? colour(runs.indexOf(run)) : null }))
  .filter(({ until }) => until > 0);
const overTime = (run, key, scale = 1) => run.series.points.map((point) => [point.t, isNumber(point[key]) ? point[key] * scale : null]);
const perSecond = (run, key) => overTime(run, key, 1 / run.series.width_s);
const pair = (key) => runs.flatMap((run, i) => [
  { name: many ? `${run.label} p50` : 'p50', colour: colour(i), points: overTime(run, `${key}_p50`) },
  { name: many ? `${run.label} p99` : 'p99', colour: colour(many ? i : 1), dash: many, points: overTime(run, `${key}_p99`) },
]);
const each = (points) => runs.map((run, i) => ({ name: run.label, colour: colour(i), points: points(run) }));
function times() {
  const box = section('Over time');
  const draw = (title, unit, curves, options = {}) => box.append(plot(title, unit, curves, { ...options, warmups: marks(runs) }));
  draw('Time to first token', 'ms', pair('ttft'));
  draw('Between tokens', 'ms', pair('itl'));
  draw('Output', 'tokens/s', each((run) => perSecond(run, 'output_tokens')));
  const kinds = many ? ['completed'] : ['sent', 'completed', 'refused', 'failed'];
  const requests = runs.flatMap((run, i) => kinds.map((kind, k) => ({
    name: many ? run.label : kind, colour: colour(many ? i : k), points: perSecond(run, kind) })));
  draw(many ? 'Requests completed' : 'Requests', 'per second', requests);
  draw('Cache hits, as answers told', '% of prompt tokens', each((run) => overTime(run, 'hit_rate', 100)), { yMax: 100 });
  if (many && runs.some((run) => get(run, 'summary.requests.refused') > 0)) {
    draw('Requests refused', 'per second', each((run) => perSecond(run, 'refused')));
  }
}

// ---- distributions
/** Without the first half percent, which is not seen but would stretch the axis by powers of ten. */
function shares(histogram) {
  const total = histogram.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  return histogram.map(([below, count]) => [below, ((seen += count) / total) * 100]).filter(([, share]) => share >= 0.5);
}
function distributions() {
  const box = section('Distribution');
  for (const [title, key] of [['Time to first token', 'ttft_ms'], ['Between tokens', 'itl_ms'], ['Whole answer', 'total_ms']]) {
    const curves = each((run) => shares(run.histograms[key]));
    box.append(plot(title, '% that took at most so long', curves, { logX: true, yMax: 100, xName: inMilliseconds }));
  }
}

// ---- workers
const GAUGES = {
  in_flight: ['requests in flight', 'legs, as the router told'],
  prefill_tokens: ['prompt tokens to compute', 'as the router booked them'],
  decode_blocks: ['KV blocks of running requests', 'as the router booked them'],
};
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const named = (run, title) => (many ? `${run.label}: ${title}` : capital(title));
function workers() {
  if (!runs.some((run) => run.workers.length > 0 || run.fleet)) return;
  const box = section('Workers');
  runs.forEach((run, i) => {
    for (const [role, field, unit] of [['prefill', 'computed_tokens', 'prompt tokens computed'], ['decode', 'output_tokens', 'tokens made']]) {
      const list = run.workers.filter((worker) => worker.role === role);
      if (list.length === 0) continue;
      const even = get(run, `balance.${role}.${field}.max_over_mean`);
      box.append(bars(named(run, `${role} workers`), `${unit}; max/mean ${short(even)}`,
        list.slice(0, 64).map((worker) => ({ name: worker.name, value: worker[field], colour: colour(i) }))));
    }
  });
  runs.filter((run) => run.fleet).forEach((run) => fleet(plots(), run));
}
function fleet(box, run) {
  const warmups = marks([run]);
  for (const [gauge, list] of Object.entries(run.fleet.gauges)) {
    const [title, unit] = GAUGES[gauge] ?? [gauge.replaceAll('_', ' '), 'as the router told'];
    for (const role of new Set(list.map((worker) => worker.role))) {
      const curves = list.filter((worker) => worker.role === role).slice(0, 16)
        .map((worker, i) => ({ name: worker.name, colour: colour(i), points: run.fleet.t.map((t, at) => [t, worker.values[at]]) }));
      // Prefill and decode workers have figures of their own, which stay zero for the others.
      const some = curves.some((curve) => curve.points.some(([, y]) => y > 0));
      if (some || gauge === 'in_flight') box.append(plot(named(run, `${role} workers, ${title}`), unit, curves, { warmups }));
    }
  }
  const hits = [{ name: 'router', colour: colour(0), points: run.fleet.t.map((t, at) => [t, isNumber(run.fleet.hit_rate[at]) ? run.fleet.hit_rate[at] * 100 : null]) }];
  if (hits[0].points.some(([, y]) => isNumber(y))) {
    box.append(plot(named(run, 'cache hits, as engines told the router'), '% of prompt tokens', hits, { yMax: 100, warmups }));
  }
}

// ---- what was asked for
function settings() {
  const flat = (object, prefix = '') => Object.entries(object).flatMap(([key, value]) =>
    value !== null && typeof value === 'object' ? flat(value, `${prefix}${key}.`) : [[prefix + key, value]]);
  const all = runs.map((run) => new Map([['started_at', run.started_at], ...flat(run.configuration)]));
  const keys = [...new Set(all.flatMap((one) => [...one.keys()]))];
  const cell = (value) => escape(value === null || value === undefined ? '–' : value);
  add(`<h2>Configuration</h2><div class="scroll"><table>${labels()}` +
    keys.map((key) => `<tr><td>${escape(key)}</td>${all.map((one) => `<td>${cell(one.get(key))}</td>`).join('')}</tr>`).join('') + '</table></div>');
}

document.getElementById('about').textContent = many
  ? `${runs.length} runs side by side; the best of a row is bold; a dotted line ends a warm-up`
  : `${runs[0].label}: ${runs[0].configuration.model} at ${runs[0].configuration.url}, ${runs[0].started_at}`;
tables();
times();
distributions();
workers();
settings();
add('<footer>Made by baton bench. Tokens over time are counted as they came, an event as one.</footer>');
