// SPDX-License-Identifier: Apache-2.0
// Draws axes, curves, bars and the values under the mouse. Knows nothing of benchmarks.
'use strict';
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
const inMilliseconds = (value) => (value >= 1000 ? `${short(value / 1000)} s` : `${short(value)} ms`);
const inSeconds = (value) => `${short(value)} s`;
function niceStep(span, count) {
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5, 10].find((step) => step * power >= raw) ?? 10);
}
/** From 0; `tight` ends at `high`, otherwise at the next tick. */
function linearAxis(high, count, { tight = false } = {}) {
  if (!(high > 0)) high = 1;
  const step = niceStep(high, count), top = tight ? high : Math.ceil(high / step - 1e-9) * step, ticks = [];
  for (let i = 0; i * step <= top + step / 1e6; ++i) ticks.push(i * step);
  return { ticks, place: (value) => value / top };
}
/** Powers of ten; within one or two of them also their doubles and fives. */
function logAxis(low, high) {
  const from = Math.floor(Math.log10(low) + 1e-9), to = Math.max(from + 1, Math.ceil(Math.log10(high) - 1e-9)), ticks = [];
  for (let power = from; power <= to; ++power) {
    for (const step of to - from > 2 || power === to ? [1] : [1, 2, 5]) ticks.push(step * 10 ** power);
  }
  return { ticks, place: (value) => (Math.log10(value) - from) / (to - from) };
}
// Drawn in the units of a narrow or of a wide card, so that text stays legible in either.
const W = (globalThis.innerWidth ?? 1200) < 560 ? 380 : 560, H = 250, LEFT = 46, RIGHT = 14, TOP = 12, BOTTOM = 24;
const px = (share) => LEFT + share * (W - LEFT - RIGHT), py = (share) => H - BOTTOM - share * (H - TOP - BOTTOM);
/** A label below an axis that stays inside of the picture. */
function tickLabel(x, y, text, right = W) {
  const half = text.length * 3.2;
  const [anchor, at] = x + half > right ? ['end', right] : ['middle', x];
  return `<text x="${at.toFixed(1)}" y="${y}" text-anchor="${anchor}">${escape(text)}</text>`;
}
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
/** A lone point between gaps is drawn as a dot. */
function curvePath(points, x, y) {
  let path = '', open = false;
  points.forEach(([at, value], i) => {
    if (isNumber(value)) {
      path += `${open ? 'L' : 'M'}${px(x.place(at)).toFixed(1)} ${py(y.place(value)).toFixed(1)}`;
      if (!open && !isNumber(points[i + 1]?.[1])) path += 'h0';
    }
    open = isNumber(value);
  });
  return path;
}
/** A warm-up without a colour is an area, one of several runs a line in its run's colour. */
function warmupMark({ until, colour: stroke }, x) {
  const at = px(Math.min(x.place(until), 1)).toFixed(1);
  if (stroke) {
    return `<line class="warmup-end" x1="${at}" x2="${at}" y1="${TOP}" y2="${H - BOTTOM}" style="stroke:${stroke}"><title>end of the warm-up</title></line>`;
  }
  const area = `<rect class="warmup" x="${LEFT}" y="${TOP}" width="${(at - LEFT).toFixed(1)}" height="${H - TOP - BOTTOM}"/>`;
  return at - LEFT > 56 ? `${area}<text x="${LEFT + 4}" y="${TOP + 12}">warm-up</text>` : area;
}
/**
 * curves: [{name, colour, dash, points: [[x, y]]}]; y null breaks a curve.
 * warmups: [{until, colour}], see warmupMark.
 */
function plot(title, unit, curves, { logX = false, xName = inSeconds, yMax, warmups = [] } = {}) {
  const box = figure(title, unit);
  curves = curves.filter((curve) => curve.points.some(([, y]) => isNumber(y)));
  if (curves.length === 0) {
    box.insertAdjacentHTML('beforeend', '<div class="empty">nothing was measured</div>');
    return box;
  }
  const all = curves.flatMap((curve) => curve.points);
  const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
  const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
  const xs = all.map(([x]) => x).filter((x) => !logX || x > 0);
  const x = logX ? logAxis(Math.max(least(xs), 1e-3), most(xs)) : linearAxis(most(xs), 6, { tight: true });
  const y = linearAxis(yMax ?? most(all.map(([, value]) => value).filter(isNumber)), 5);
  let svg = '';
  for (const tick of y.ticks) {
    const at = py(y.place(tick));
    svg += `<line class="grid" x1="${LEFT}" x2="${W - RIGHT}" y1="${at}" y2="${at}"/>`;
    svg += `<text x="${LEFT - 6}" y="${at + 4}" text-anchor="end">${short(tick)}</text>`;
  }
  x.ticks.forEach((tick, i) => {
    const at = px(x.place(tick));
    svg += `<line class="grid" x1="${at}" x2="${at}" y1="${TOP}" y2="${H - BOTTOM}"/>`;
    // The unit stands at the last tick; of a logarithmic axis it changes, and stands at each.
    svg += tickLabel(at, H - BOTTOM + 15, logX || i === x.ticks.length - 1 ? xName(tick) : short(tick));
  });
  svg += warmups.map((one) => warmupMark(one, x)).join('');
  for (const curve of curves) {
    svg += `<path class="curve" d="${curvePath(curve.points, x, y)}" style="stroke:${curve.colour}" ${curve.dash ? 'stroke-dasharray="5 4"' : ''}/>`;
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
/** rows: [{name, value, colour}], drawn as lying bars. */
function bars(title, unit, rows) {
  const box = figure(title, unit), step = 20, height = rows.length * step + 26, left = 130;
  const axis = linearAxis(rows.reduce((a, row) => Math.max(a, row.value), 0), 4, { tight: true });
  const at = (value) => left + axis.place(value) * (W - left - 50);
  let svg = '';
  for (const tick of axis.ticks) {
    svg += `<line class="grid" x1="${at(tick)}" x2="${at(tick)}" y1="0" y2="${height - 20}"/>`;
    svg += tickLabel(at(tick), height - 5, short(tick));
  }
  rows.forEach((row, i) => {
    svg += `<rect x="${left}" y="${i * step + 3}" width="${Math.max(at(row.value) - left, 0)}" height="${step - 6}" style="fill:${row.colour}"/>`;
    svg += `<text x="${left - 6}" y="${i * step + 14}" text-anchor="end">${escape(row.name.slice(-20))}</text>`;
    svg += `<text x="${at(row.value) + 5}" y="${i * step + 14}">${short(row.value)}</text>`;
  });
  box.insertAdjacentHTML('beforeend', `<svg viewBox="0 0 ${W} ${height}" role="img" aria-label="${escape(title)}">${svg}</svg>`);
  return box;
}
