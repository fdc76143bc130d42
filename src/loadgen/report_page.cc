// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "loadgen/report.h"

namespace baton::loadgen {

std::string_view report_style() {
  return R"CSS(:root { color-scheme: light dark; --back: #fbfbfa; --card: #ffffff; --ink: #1d2126; --soft: #67707b; --line: #dfe2e6;
  --c0: #2369b3; --c1: #c2502f; --c2: #2b8250; --c3: #8553a8; --c4: #a97a08; --c5: #0b8086; --c6: #b03a6f; --c7: #56626e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171b; --card: #1c2026; --ink: #e6e8eb; --soft: #98a2ad; --line: #333a43;
    --c0: #6fb1f2; --c1: #f08b68; --c2: #66c78e; --c3: #c39ae0; --c4: #e0b64c; --c5: #54c6cc; --c6: #ee86b4; --c7: #a9b4bf; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 14px/1.45 system-ui, sans-serif; }
header, main { max-width: 1200px; margin: 0 auto; padding: 0 20px; }
h1 { font-size: 22px; margin: 24px 0 0; }
h2 { font-size: 17px; margin: 28px 0 10px; }
header p { color: var(--soft); margin: 4px 0 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; background: var(--card); border: 1px solid var(--line); }
th, td { padding: 4px 12px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: 700; }
tr.part td { color: var(--soft); padding-top: 10px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(460px, 1fr)); gap: 16px; }
@media (max-width: 560px) { .plots { grid-template-columns: 1fr; } }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; position: relative; }
figcaption { font-weight: 600; }
figcaption small { color: var(--soft); font-weight: 400; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11px; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12px; color: var(--soft); margin-top: 4px; }
.legend i { display: inline-block; width: 14px; height: 0; border-top: 3px solid; vertical-align: middle; margin-right: 5px; }
.legend i.dash { border-top-style: dashed; }
.tip { position: absolute; pointer-events: none; background: var(--card); border: 1px solid var(--line); border-radius: 4px;
  padding: 4px 8px; font-size: 12px; white-space: nowrap; display: none; z-index: 1; }
.empty { color: var(--soft); padding: 30px 0; text-align: center; }
footer { color: var(--soft); padding: 24px 0; }
)CSS";
}

// Draws: axes, curves, bars and what the mouse points at. Knows nothing of benchmarks.
std::string_view report_plots() {
  return R"JS('use strict';
const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const colour = (i) => `var(--c${i % 8})`;
const isNumber = (value) => typeof value === 'number' && isFinite(value);
function short(value) {
  if (!isNumber(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(3)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return String(+value.toPrecision(size >= 100 ? 4 : 3));
}
function niceStep(span, count) {
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5, 10].find((step) => step * power >= raw) ?? 10);
}
function linearAxis(low, high, count) {
  if (!(high > low)) high = low + 1;
  const step = niceStep(high - low, count), top = Math.ceil(high / step - 1e-9) * step, ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= top + step / 1e6; tick += step) ticks.push(tick);
  return { ticks, place: (value) => (value - low) / (top - low) };
}
function logAxis(low, high) {
  const from = Math.floor(Math.log10(low)), to = Math.max(from + 1, Math.ceil(Math.log10(high))), ticks = [];
  for (let power = from; power <= to; ++power) ticks.push(10 ** power);
  return { ticks, place: (value) => (Math.log10(Math.max(value, low)) - from) / (to - from) };
}
const W = 560, H = 250, LEFT = 52, RIGHT = 12, TOP = 12, BOTTOM = 30;
const px = (share) => LEFT + share * (W - LEFT - RIGHT), py = (share) => H - BOTTOM - share * (H - TOP - BOTTOM);
function figure(title, unit) {
  const box = document.createElement('figure');
  box.innerHTML = `<figcaption>${escape(title)} <small>${escape(unit)}</small></figcaption>`;
  return box;
}
function legend(curves) {
  const box = document.createElement('div');
  box.className = 'legend';
  box.innerHTML = curves
    .map((curve) => `<span><i class="${curve.dash ? 'dash' : ''}" style="border-color:${curve.colour}"></i>${escape(curve.name)}</span>`)
    .join('');
  return box;
}
/** curves: [{name, colour, dash, points: [[x, y]]}]; y null breaks a curve. */
function plot(title, unit, curves, { logX = false, xUnit = 's', yMax, xName = (x) => short(x) } = {}) {
  const box = figure(title, unit);
  curves = curves.filter((curve) => curve.points.some(([, y]) => isNumber(y)));
  if (curves.length === 0) {
    box.insertAdjacentHTML('beforeend', '<div class="empty">nothing was measured</div>');
    return box;
  }
  const all = curves.flatMap((curve) => curve.points).filter(([, y]) => isNumber(y));
  const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
  const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
  const xs = all.map(([x]) => x);
  const x = logX ? logAxis(Math.max(least(xs.filter((one) => one > 0)), 1e-3), most(xs)) : linearAxis(0, most(xs), 6);
  const y = linearAxis(0, yMax ?? most(all.map(([, value]) => value)), 5);
  let svg = '';
  for (const tick of y.ticks) {
    svg += `<line class="grid" x1="${LEFT}" x2="${W - RIGHT}" y1="${py(y.place(tick))}" y2="${py(y.place(tick))}"/>`;
    svg += `<text x="${LEFT - 6}" y="${py(y.place(tick)) + 4}" text-anchor="end">${short(tick)}</text>`;
  }
  for (const tick of x.ticks) {
    svg += `<line class="grid" x1="${px(x.place(tick))}" x2="${px(x.place(tick))}" y1="${TOP}" y2="${H - BOTTOM}"/>`;
    svg += `<text x="${px(x.place(tick))}" y="${H - BOTTOM + 15}" text-anchor="middle">${short(tick)}</text>`;
  }
  svg += `<text x="${W - RIGHT}" y="${H - 3}" text-anchor="end">${escape(xUnit)}</text>`;
  for (const curve of curves) {
    let path = '', open = false;
    for (const [at, value] of curve.points) {
      if (isNumber(value)) path += `${open ? 'L' : 'M'}${px(x.place(at)).toFixed(1)} ${py(y.place(value)).toFixed(1)}`;
      open = isNumber(value);
    }
    svg += `<path class="curve" d="${path}" style="stroke:${curve.colour}" ${curve.dash ? 'stroke-dasharray="5 4"' : ''}/>`;
  }
  box.insertAdjacentHTML('beforeend', `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escape(title)}">${svg}</svg>`);
  box.append(legend(curves));
  point(box, curves, x, xName);
  return box;
}
/** Shows the values of the curves where the mouse is. */
function point(box, curves, x, xName) {
  const tip = document.createElement('div');
  tip.className = 'tip';
  box.append(tip);
  const svg = box.querySelector('svg');
  svg.addEventListener('mousemove', (event) => {
    const area = svg.getBoundingClientRect(), at = ((event.clientX - area.left) / area.width) * W;
    const near = (points) =>
      points.reduce((best, one) => (Math.abs(px(x.place(one[0])) - at) < Math.abs(px(x.place(best[0])) - at) ? one : best));
    const found = curves.map((curve) => ({ curve, at: near(curve.points) }));
    tip.innerHTML =
      `<b>${escape(xName(found[0].at[0]))}</b>` +
      found.slice(0, 12).map((one) => `<br><span style="color:${one.curve.colour}">■</span> ${escape(one.curve.name)}: ${short(one.at[1])}`).join('');
    tip.style.display = 'block';
    const left = event.clientX - box.getBoundingClientRect().left;
    tip.style.left = left > area.width / 2 ? `${left - tip.offsetWidth - 12}px` : `${left + 12}px`;
    tip.style.top = `${event.clientY - box.getBoundingClientRect().top}px`;
  });
  svg.addEventListener('mouseleave', () => (tip.style.display = 'none'));
}
/** rows: [{name, value, colour, note}], drawn as lying bars with a line at their mean. */
function bars(title, unit, rows) {
  const box = figure(title, unit), step = 20, height = rows.length * step + 26, left = 150;
  const most = rows.reduce((a, row) => Math.max(a, row.value), 0), axis = linearAxis(0, most, 4);
  const at = (value) => left + axis.place(value) * (W - left - 60);
  let svg = '';
  for (const tick of axis.ticks) {
    svg += `<line class="grid" x1="${at(tick)}" x2="${at(tick)}" y1="0" y2="${height - 20}"/>`;
    svg += `<text x="${at(tick)}" y="${height - 5}" text-anchor="middle">${short(tick)}</text>`;
  }
  rows.forEach((row, i) => {
    svg += `<rect x="${left}" y="${i * step + 3}" width="${Math.max(at(row.value) - left, 0)}" height="${step - 6}" style="fill:${row.colour}"/>`;
    svg += `<text x="${left - 6}" y="${i * step + 14}" text-anchor="end">${escape(row.name.slice(-24))}</text>`;
    svg += `<text x="${at(row.value) + 5}" y="${i * step + 14}">${short(row.value)}</text>`;
  });
  box.insertAdjacentHTML('beforeend', `<svg viewBox="0 0 ${W} ${height}" role="img" aria-label="${escape(title)}">${svg}</svg>`);
  return box;
}
)JS";
}

}  // namespace baton::loadgen
