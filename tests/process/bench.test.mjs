// SPDX-License-Identifier: Apache-2.0
// baton bench against simulated engines and through the router.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';

import { makeCertificate } from './support/certificate.mjs';
import { Fleet, Sim } from './support/fleet.mjs';
import { Process, until } from './support/process.mjs';
import { openReport } from './support/report_page.mjs';
import { scenario } from './support/scenario.mjs';

let runs = 0;

/** Runs to its end; {code, stdout, stderr, result}. */
async function bench(s, address, flags, { code = 0 } = {}) {
  const output = s.file(`bench-${++runs}.json`);
  const url = address ? ['--url', address.includes('://') ? address : `http://${address}`] : [];
  const process = s.adopt(new Process(`bench-${runs}`, ['bench', ...url, '--output', output, ...flags]));
  process.expectedExit = code;
  await process.ended(60_000);
  assert.equal(process.exited.code, code, process.stdout + process.stderr);
  const text = await readFile(output, 'utf8').catch(() => undefined);
  return { ...process, output, result: text && JSON.parse(text) };
}

const sum = (list, key) => list.reduce((total, one) => total + one[key], 0);

scenario('closed loop on one engine', async (s) => {
  const sim = await Sim.start(s);
  const { result, stdout } = await bench(s, sim.address, ['--concurrency', '4', '--requests', '40', '--output-tokens', '10', '--input-tokens', '100']);
  const { summary, configuration, series, histograms, samples } = result;
  assert.deepEqual(
    [summary.requests.sent, summary.requests.completed, summary.requests.refused, summary.requests.failed],
    [40, 40, 0, 0],
  );
  assert.equal(summary.output_tokens, 400);
  assert.equal(summary.prompt_tokens, 4_000, 'prompts have exactly the length asked for');
  assert.equal(summary.ttft_ms.count, 40);
  assert.ok(summary.itl_ms.count > 0 && summary.itl_ms.count <= 360);
  assert.ok(summary.total_ms.p50 >= summary.ttft_ms.p50);
  assert.equal(configuration.model, 'demo');
  assert.equal(sum(series.points, 'completed'), 40);
  assert.equal(histograms.ttft_ms.reduce((total, [, count]) => total + count, 0), 40);
  assert.equal(samples.length, 40);
  assert.match(stdout, /40 completed, 0 refused, 0 failed of 40 sent/);
  assert.equal((await sim.state()).requests, 40);
});

scenario('open loop with a warm-up, a target and chat', async (s) => {
  const sim = await Sim.start(s);
  const flags = ['--api', 'chat', '--rate', '20', '--arrivals', 'even', '--requests', '60', '--warmup', '2s', '--output-tokens', '4', '--input-tokens', '20'];
  const { result } = await bench(s, sim.address, [...flags, '--slo-ttft', '60000', '--slo-itl', '60000', '--threads', '2']);
  const { requests, goodput } = result.summary;
  assert.equal(requests.sent, 60, 'one each 50 ms, however fast the answers are');
  assert.equal(requests.completed + requests.warmup, 60);
  assert.ok(requests.warmup >= 5 && requests.warmup <= 41, `${requests.warmup} of the first two seconds`);
  assert.equal(goodput.share, 1);
  assert.ok((await sim.legs()).every(({ path }) => path === undefined || path === '/v1/chat/completions'));
});

scenario('a trace is replayed with its lengths, its times and its shared prefixes', async (s) => {
  const sim = await Sim.start(s);
  const trace = s.file('trace.jsonl');
  const lines = [
    { timestamp: 100, input_length: 1100, output_length: 3, hash_ids: [1, 2, 3] },
    { timestamp: 2100, input_length: 1100, output_length: 4, hash_ids: [1, 2, 9] },
    { timestamp: 4100, input_length: 700, output_length: 5, hash_ids: [1, 8] },
  ];
  await writeFile(trace, lines.map((line) => JSON.stringify(line)).join('\n'));
  const { result } = await bench(s, sim.address, ['--workload', 'trace', '--trace', trace, '--time-scale', '4']);
  const { summary, samples } = result;
  assert.equal(summary.requests.completed, 3);
  assert.deepEqual(samples.map((sample) => sample.prompt_tokens), [1100, 1100, 700]);
  assert.deepEqual(samples.map((sample) => sample.output_tokens), [3, 4, 5]);
  assert.deepEqual(samples.map((sample) => sample.cached_tokens), [0, 1024, 512], 'equal ids are equal blocks');
  samples.forEach((sample, i) => {
    assert.ok(sample.t >= 0.5 * i, `sample ${i} was sent at ${sample.t}`);
  });
  assert.ok(samples[2].t < 4, 'four times as fast');
});

scenario('conversations go on with what was answered', async (s) => {
  const sim = await Sim.start(s, { blockSize: 4 });
  const flags = ['--workload', 'multi-turn', '--turns', '3', '--think-time', '20ms', '--prefix-tokens', '40', '--input-tokens', '12', '--output-tokens', '8'];
  for (const more of [['--prompt', 'text'], ['--prompt', 'tokens'], ['--api', 'chat']]) {
    const { result } = await bench(s, sim.address, [...flags, ...more, '--concurrency', '1', '--requests', '3', '--seed', String(runs)]);
    const [first, second, third] = result.samples;
    assert.ok(first.prompt_tokens < second.prompt_tokens && second.prompt_tokens < third.prompt_tokens);
    // All but the last block of what was said before is there, the answer included where ids are sent.
    const known = more[1] === 'tokens' ? second.prompt_tokens + 8 : second.prompt_tokens;
    assert.ok(third.cached_tokens >= known - 8, `${more}: ${third.cached_tokens} of ${known} tokens were cached`);
  }
});

scenario('refused requests are counted by themselves', async (s) => {
  const sim = await Sim.start(s);
  await sim.fault({ kind: 'status', status: 429, count: 5 });
  const { result, stdout } = await bench(s, sim.address, ['--rate', '50', '--requests', '20', '--output-tokens', '2']);
  const { requests, refused_ms: refused, errors } = result.summary;
  assert.deepEqual([requests.completed, requests.refused, requests.refused_with_retry_after, requests.failed], [15, 5, 5, 0]);
  assert.equal(refused.count, 5);
  assert.equal(Object.values(errors).reduce((a, b) => a + b), 5);
  assert.ok(Object.keys(errors).every((kind) => kind.startsWith('http_429')));
  assert.match(stdout, /5 refused/);
});

scenario('an endpoint that is gone is an error, not a hang', async (s) => {
  const sim = await Sim.start(s);
  await sim.kill();
  const unanswered = await bench(s, sim.address, [], { code: 2 });
  assert.match(unanswered.stderr, /is the endpoint up\?/);
  const { result } = await bench(s, sim.address, ['--model', 'demo', '--concurrency', '1', '--requests', '2'], { code: 1 });
  assert.deepEqual(result.summary.errors, { connect: 2 });
});

scenario('Ctrl-C ends a run and keeps what was measured', async (s) => {
  const sim = await Sim.start(s, { decodeMs: 5 });
  const output = s.file('interrupted.json');
  const flags = ['--concurrency', '4', '--requests', '100000', '--output-tokens', '10', '--output', output];
  const process = s.adopt(new Process('bench', ['bench', '--url', `http://${sim.address}`, ...flags]));
  await until('some requests are through', async () => (await sim.state()).requests > 20);
  process.signal('SIGINT');
  await process.ended(10_000);
  assert.equal(process.exited.code, 0, process.stderr);
  const { summary } = JSON.parse(await readFile(output, 'utf8'));
  assert.equal(summary.interrupted, true);
  assert.ok(summary.requests.completed >= 16);
  assert.equal(summary.requests.completed + summary.requests.cut, summary.requests.sent);
  assert.equal(summary.requests.failed, 0);
});

scenario('through the router: workers, its own figures, report and comparison', async (s) => {
  const fleet = await Fleet.start(s, { counts: { prefill: 2, decode: 2 }, model: { policy: 'round_robin' } });
  const page = s.file('one.html');
  const flags = ['--workload', 'shared-prefix', '--prefix-tokens', '160', '--input-tokens', '32', '--output-tokens', '8', '--requests', '40'];
  const admin = ['--admin', `http://${fleet.router.admin}`];
  const one = await bench(s, fleet.router.address, [...flags, ...admin, '--concurrency', '4', '--report', page]);
  const other = await bench(s, fleet.router.address, [...flags, '--rate', '200', '--label', 'open', '--seed', '2']);

  await s.step('each role shared the load evenly', () => {
    const { workers, balance, summary } = one.result;
    assert.deepEqual(workers.map(({ role, requests }) => `${role} ${requests}`).sort(), ['decode 20', 'decode 20', 'prefill 20', 'prefill 20']);
    const addresses = fleet.sims.map((sim) => sim.address).sort();
    assert.deepEqual(workers.map(({ name }) => name).sort(), addresses);
    assert.equal(balance.decode.output_tokens.max_over_mean, 1);
    assert.equal(sum(workers, 'output_tokens'), summary.output_tokens);
    assert.ok(summary.hit_rate > 0.5, `hit rate ${summary.hit_rate}`);
  });

  await s.step('the router was asked for its load', () => {
    const { t, gauges } = one.result.fleet;
    assert.ok(t.length >= 1);
    assert.equal(gauges.in_flight.length, 4);
    assert.equal(other.result.fleet, null);
  });

  await s.step('the report draws all of it', async () => {
    const report = openReport(await readFile(page, 'utf8'));
    assert.deepEqual(report.data[0].summary, one.result.summary);
    assert.match(report.about, /shared-prefix/);
    for (const title of ['Time to first token', 'Between tokens', 'Output', 'Cache hits', 'Prefill workers', 'Decode workers', 'Decode workers, requests in flight']) {
      assert.ok(report.page.includes(title), title);
    }
    assert.ok(!/NaN|undefined|Infinity/.test(report.page), 'every figure is one');
    assert.ok((report.page.match(/class="curve"/g) ?? []).length >= 8);
    assert.ok(!report.page.includes('class="warmup"'), 'there was none');
    for (const [, words] of report.page.matchAll(/<figcaption>(.*?) <small>/g)) {
      assert.ok(!/\b(\w+) \1\b/i.test(words), `no word stands twice in "${words}"`);
    }
  });

  await s.step('the report marks the warm-up, and no label leaves its picture', async () => {
    const marked = s.file('warm.html');
    const warm = await bench(s, fleet.router.address, [...flags, '--concurrency', '1', '--warmup', '20', '--report', marked, '--label', 'warm']);
    assert.ok(warm.result.summary.measured_from_s > 0);
    const report = openReport(await readFile(marked, 'utf8'));
    assert.ok(report.page.includes('class="warmup"'), 'a single run has an area');
    for (const [, width, drawing] of report.page.matchAll(/<svg viewBox="0 0 (\d+) \d+"[^>]*>(.*?)<\/svg>/g)) {
      for (const [, x, anchor, text] of drawing.matchAll(/<text x="([\d.-]+)" y="[\d.-]+"(?: text-anchor="(\w+)")?>([^<]*)</g)) {
        // Digits of this font are a little above 6 units wide.
        const room = { end: [1, 0], middle: [0.5, 0.5] }[anchor] ?? [0, 1];
        const [left, right] = room.map((share) => share * text.length * 6.4);
        assert.ok(Number(x) - left >= 0 && Number(x) + right <= Number(width), `"${text}" at ${x} fits into ${width}`);
      }
    }
    const two = s.file('two.html');
    const process = s.adopt(new Process('compare', ['bench', 'compare', warm.output, one.output, '--report', two]));
    await process.ended();
    const compared = openReport(await readFile(two, 'utf8'));
    assert.ok(compared.page.includes('class="warmup-end"') && !compared.page.includes('class="warmup"'), 'several have lines');
  });

  await s.step('results are compared in a table and a page', async () => {
    const both = s.file('both.html');
    const process = s.adopt(new Process('compare', ['bench', 'compare', one.output, other.output, one.output, '--report', both]));
    await process.ended();
    assert.equal(process.exited.code, 0, process.stderr);
    assert.match(process.stdout, /shared-prefix +open +shared-prefix \(bench-\d+\)\n/);
    assert.match(process.stdout, /completed +40 +40 +40\n/);
    const report = openReport(await readFile(both, 'utf8'));
    assert.equal(report.data.length, 3);
    assert.ok(report.page.includes('open p99'));
    assert.ok(!/NaN|undefined|Infinity/.test(report.page));
  });

  await s.step('what is no result is refused with advice', async () => {
    const process = s.adopt(new Process('compare', ['bench', 'compare', page]));
    process.expectedExit = 2;
    await process.ended();
    assert.match(process.stderr, /is no result of baton bench; make one with --output/);
  });
});

scenario('https, with a certificate that is trusted and one that is not', async (s) => {
  const [certificate, key] = [s.file('certificate.pem'), s.file('key.pem')];
  await makeCertificate(certificate, key);
  const { router } = await Fleet.start(s, { counts: { aggregated: 1 }, config: { tls: { certificate, key } } });
  const flags = ['--model', 'demo', '--concurrency', '2', '--requests', '10', '--output-tokens', '5'];
  const trusted = await bench(s, `https://${router.address}`, [...flags, '--ca-file', certificate]);
  assert.equal(trusted.result.summary.requests.completed, 10);
  const stranger = await bench(s, `https://${router.address}`, flags, { code: 1 });
  assert.deepEqual(stranger.result.summary.errors, { tls: 10 });
});

scenario('flags that make no sense are refused with advice', async (s) => {
  for (const [flags, advice] of [
    [['--rate', '3', '--concurrency', '3'], /exclude each other; give one/],
    [['--workload', 'trace', '--trace', s.file('none')], /cannot read/],
    [['--duration', 'long'], /--duration/],
    [['--workload', 'nonsense'], /--workload/],
  ]) {
    const { stderr } = await bench(s, '127.0.0.1:1', flags, { code: 2 });
    assert.match(stderr, advice);
  }
  const { stderr } = await bench(s, undefined, [], { code: 2 });
  assert.match(stderr, /say what to load with --url/);
});
