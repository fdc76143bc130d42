// SPDX-License-Identifier: Apache-2.0
// Starting, draining and ending; what an operator sees of it in errors, logs and metrics.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { promisify } from 'node:util';

import { Fleet, Router, Sim } from './support/fleet.mjs';
import { RawConnection, fetchText, readAnswer, request, wire } from './support/http.mjs';
import { Process, inTime, until } from './support/process.mjs';
import { scenario } from './support/scenario.mjs';
import { expectedAnswer } from './support/text.mjs';

const CHAT = '/v1/chat/completions';
const LONG = { minOutput: 150, maxOutput: 150 };
const AT_ONCE = 10_000; // far below the grace, far above what a busy machine needs
const chat = (text, more = {}) => ({ model: 'demo', messages: [{ role: 'user', content: text }], stream: true, ...more });

const statusOf = async (address, path) => (await request(address, { method: 'GET', path })).status;

async function refused(address) {
  try {
    const connection = await RawConnection.open(address);
    connection.destroy();
    return false;
  } catch {
    return true;
  }
}

scenario('SIGTERM lets running streams finish', async (s) => {
  const fleet = await Fleet.start(s, { sim: { decodeMs: 30, ...LONG } });
  const { router } = fleet;
  assert.equal(await statusOf(router.admin, '/ready'), 200);
  const body = chat('Finish me');
  const running = request(router.address, { path: CHAT, body: JSON.stringify(body) });
  await until('the stream runs', async () => (await fleet.of('decode')[0].state()).running > 0);
  router.process.signal('SIGTERM');
  await until('not ready any more', async () => (await statusOf(router.admin, '/ready')) === 503);
  assert.equal(await statusOf(router.admin, '/health'), 200, 'alive while it drains');
  await until('new connections are refused', () => refused(router.address));
  const answer = readAnswer(await inTime('the running stream', running));
  assert.equal(answer.text, expectedAnswer(body, LONG).choices[0].text);
  assert.ok(answer.done && answer.complete);
  assert.deepEqual(await router.process.ended(), { code: 0, signal: null });
});

scenario('streams beyond the grace end as errors', async (s) => {
  const sim = { decodeMs: 20, minOutput: 5000, maxOutput: 5000 };
  const fleet = await Fleet.start(s, { sim, config: { shutdown_grace: '500ms' } });
  const running = request(fleet.router.address, { path: CHAT, body: JSON.stringify(chat('Too long')) });
  await until('the stream runs', async () => (await fleet.of('decode')[0].state()).running > 0);
  fleet.router.process.signal('SIGTERM');
  const answer = readAnswer(await inTime('the end of the stream', running));
  assert.ok(!answer.done, 'a stream cut short has no [DONE]');
  assert.equal(answer.error?.code, 'shutting_down');
  assert.deepEqual(await fleet.router.process.ended(), { code: 0, signal: null });
  await until('the engines are free', async () =>
    (await fleet.states()).every(({ running: now, waiting, pinned }) => now + waiting + pinned === 0));
});

scenario('what is half sent at SIGTERM is not waited for, and not cut without a word', async (s) => {
  const { router } = await Fleet.start(s, { config: { shutdown_grace: '10m' } });
  const open = () => RawConnection.open(router.address);
  const body = JSON.stringify(chat('Half sent', { stream: false }));
  const whole = wire('POST', CHAT, {}, body);
  const head = whole.slice(0, 20);
  const begun = whole.slice(0, -5);
  const [halfHead, halfBody, inTwo, silent, fresh] = await Promise.all(Array.from({ length: 5 }, open));
  halfHead.write(head);
  halfBody.write(begun);
  inTwo.write(begun);
  // A whole request behind the halves: when it is answered, they have been read.
  const other = await open();
  assert.equal((await inTime('an answer', other.write(whole).response())).status, 200);
  router.process.signal('SIGTERM');
  inTwo.write(whole.slice(-5));
  fresh.write(whole);
  for (const [name, connection] of Object.entries({ inTwo, fresh })) {
    assert.equal((await inTime(name, connection.response())).status, 200, name);
  }
  for (const [name, connection] of Object.entries({ halfHead, halfBody })) {
    const answer = await inTime(name, connection.response());
    assert.equal(answer.status, 503, name);
    assert.equal(JSON.parse(answer.text).error.code, 'shutting_down');
    assert.match(answer.headers['retry-after'], /^\d+$/);
    await inTime('the connection is closed', connection.closed());
  }
  await inTime('the connection that sent nothing is closed', silent.closed());
  assert.deepEqual(await router.process.ended(AT_ONCE), { code: 0, signal: null });
});

for (const [first, second] of [['SIGTERM', 'SIGTERM'], ['SIGINT', 'SIGINT'], ['SIGTERM', 'SIGINT']]) {
  scenario(`${second} after ${first} does not wait for the grace`, async (s) => {
    const sim = { decodeMs: 20, minOutput: 100_000, maxOutput: 100_000 };
    const fleet = await Fleet.start(s, { sim, config: { shutdown_grace: '10m' } });
    const { router } = fleet;
    const running = request(router.address, { path: CHAT, body: JSON.stringify(chat('Endless')) });
    await until('the stream runs', async () => (await fleet.of('decode')[0].state()).running > 0);
    router.process.signal(first);
    await until('it drains', async () => (await statusOf(router.admin, '/ready')) === 503);
    router.process.signal(second);
    const answer = readAnswer(await inTime('the end of the stream', running, AT_ONCE));
    assert.ok(!answer.done, 'a stream cut short has no [DONE]');
    assert.equal(answer.error?.code, 'shutting_down');
    assert.deepEqual(await router.process.ended(AT_ONCE), { code: 0, signal: null });
  });
}

scenario('SIGHUP and SIGPIPE are harmless, SIGINT ends', async (s) => {
  const { router } = await Fleet.start(s);
  for (const signal of ['SIGHUP', 'SIGPIPE']) {
    router.process.signal(signal);
    const body = chat(`after ${signal}`);
    const answer = readAnswer(await request(router.address, { path: CHAT, body: JSON.stringify(body) }));
    assert.equal(answer.text, expectedAnswer(body).choices[0].text);
  }
  router.process.signal('SIGINT');
  assert.deepEqual(await router.process.ended(), { code: 0, signal: null });
});

scenario('a configuration path that leads to a pipe or a folder blocks nothing', async (s) => {
  const sim = await Sim.start(s);
  const router = await Router.start(s, { models: [{ name: 'demo', workers: [sim.worker()] }] });
  const path = router.configFile.path;
  const refusals = () => router.logLines('config_refused').map(({ problem }) => problem);
  for (const [make, kind] of [['mkfifo', 'pipe'], ['mkdir', 'directory']]) {
    await s.step(kind, async () => {
      await rm(path);
      await promisify(execFile)(make, [path]);
      router.process.signal('SIGHUP');
      await until(`a ${kind} is refused`, () => refusals().some((problem) => problem.includes(`it is a ${kind}`)));
      assert.ok(refusals().every((problem) => problem.startsWith(`${path}: `)), JSON.stringify(refusals()));
      assert.equal(await statusOf(router.admin, '/ready'), 200, 'what was read before holds');
    });
  }
  router.process.signal('SIGTERM');
  assert.deepEqual(await router.process.ended(), { code: 0, signal: null });
});

const GOOD = [
  'listen: 127.0.0.1:0',
  'models:',
  '  - name: demo',
  '    workers:',
  '      - {url: "http://127.0.0.1:9", engine: vllm, role: aggregated}',
];

scenario('bad configurations are refused with file, line and a hint', async (s) => {
  const cases = {
    'unknown key': [[...GOOD, 'lissten: 127.0.0.1:0'], 6, /lissten/],
    'wrong type': [[...GOOD, 'threads: many'], 6, /threads/],
    'unknown engine': [GOOD.map((line) => line.replace('vllm', 'llvm')), 5, /vllm.*sglang.*trtllm/],
    'duplicate worker': [[...GOOD, GOOD[4]], 6, /127\.0\.0\.1:9/],
    'no models': [GOOD.slice(0, 1), undefined, /models/],
    'not YAML': [[...GOOD, 'admin: [1, 2'], undefined, /./],
  };
  for (const [name, [lines, line, hint]] of Object.entries(cases)) {
    await s.step(name, async () => {
      const file = s.file('bad.yaml');
      await writeFile(file, `${lines.join('\n')}\n`);
      const serve = s.adopt(new Process('refused router', ['serve', '--config', file]));
      serve.expectedExit = 2;
      assert.equal((await serve.ended()).code, 2);
      assert.ok(serve.stderr.includes(line ? `${file}:${line}:` : file), serve.stderr);
      assert.match(serve.stderr, hint);
    });
  }
  await s.step('no such file', async () => {
    const serve = s.adopt(new Process('refused router', ['serve', '--config', s.file('none.yaml')]));
    serve.expectedExit = 2;
    assert.equal((await serve.ended()).code, 2);
    assert.match(serve.stderr, /none\.yaml/);
  });
});

for (const flag of ['--listen', '--admin']) {
  scenario(`a port in use for ${flag} is told`, async (s) => {
    const taken = net.createServer();
    await new Promise((resolve) => taken.listen(0, '127.0.0.1', resolve));
    s.after(() => new Promise((resolve) => taken.close(resolve)));
    const address = `127.0.0.1:${taken.address().port}`;
    const file = s.file('router.yaml');
    await writeFile(file, `${GOOD.join('\n')}\n`);
    const serve = s.adopt(new Process('second router', ['serve', '--config', file, flag, address]));
    serve.expectedExit = 2;
    assert.deepEqual(await serve.ended(), { code: 2, signal: null }, serve.stderr);
    assert.ok(serve.stderr.includes(address), serve.stderr);
    assert.match(serve.stderr, /in use/i);
    assert.doesNotMatch(serve.stderr, /terminate called|what\(\)/, 'a message, not a crash');
  });
}

scenario('--help lists the options', async (s) => {
  for (const [args, words] of [
    [['--help'], ['serve', 'sim', 'demo']],
    [['serve', '--help'], ['--config', '--listen', '--admin', '--ready-file']],
    [['sim', '--help'], ['--engine', '--role', '--port', '--decode-ms', '--ready-file']],
  ]) {
    const help = s.adopt(new Process(args.join(' '), args));
    assert.equal((await help.ended()).code, 0);
    for (const word of words) assert.ok((help.stdout + help.stderr).includes(word), `${args.join(' ')} names ${word}`);
  }
});

scenario('baton alone lists its commands', async (s) => {
  const alone = s.adopt(new Process('alone', []));
  alone.expectedExit = 2;
  assert.deepEqual(await alone.ended(), { code: 2, signal: null });
  for (const command of ['serve', 'workers', 'explain', 'register', 'tokenize', 'bench', 'demo', 'sim']) {
    assert.match(alone.stdout, new RegExp(`^  ${command} +\\w`, 'm'));
  }
  assert.equal(alone.stderr, '');
});

scenario('a mistyped command, option or value gets a suggestion', async (s) => {
  for (const [args, words] of [
    [['srve'], /^baton: unknown command 'srve'; did you mean serve\?\nSee 'baton --help'.\n$/],
    [['serve', '--confg', 'x.yaml'], /^baton serve: unknown option '--confg'; did you mean --config\?\nSee 'baton serve --help'.\n$/],
    [['workers', 'drian', '1'], /^baton workers: unknown command 'drian'; did you mean drain\?/],
    [['register', '--rol', 'decode'], /^baton register: unknown option '--rol'; did you mean --role\?/],
    [['sim', '--engine', 'vlm'], /^baton sim: --engine: unknown 'vlm'; did you mean vllm\?/],
    [['bench', '--workload', 'shared-prefx'], /^baton bench: --workload: unknown 'shared-prefx'; did you mean shared-prefix\?/],
    [['bench', '--api', 'x'], /^baton bench: --api: unknown 'x'; write one of chat, completions/],
  ]) {
    const mistyped = s.adopt(new Process(args.join(' '), args));
    mistyped.expectedExit = 2;
    assert.deepEqual(await mistyped.ended(), { code: 2, signal: null });
    assert.match(mistyped.stderr, words);
    assert.equal(mistyped.stdout, '');
  }
});

scenario('an unknown command is named', async (s) => {
  for (const args of [['bogus'], ['bogus', '--config', 'x.yaml']]) {
    const nonsense = s.adopt(new Process('nonsense', args));
    nonsense.expectedExit = 2;
    assert.deepEqual(await nonsense.ended(), { code: 2, signal: null });
    assert.match(nonsense.stderr, /bogus/);
  }
});

scenario('what the engines did wrong is a warning, everything else is not', async (s) => {
  const fleet = await Fleet.start(s, { counts: { aggregated: 1 }, sim: { decodeMs: 5, ...LONG } });
  const { router } = fleet;
  const [sim] = fleet.sims;
  const send = (id, more = {}) =>
    request(router.address, { path: CHAT, body: JSON.stringify(chat(id, more)), headers: { 'X-Request-Id': id } });
  const cases = {
    'a success': [{}, undefined, 'ok', 'info'],
    'an unknown model': [{ model: 'nobody' }, undefined, 'model_not_found', 'info'],
    'a request the engine rejects': [{}, { kind: 'status', status: 400 }, 'engine_rejected', 'info'],
    'an engine that is full': [{}, { kind: 'status', status: 503 }, 'engine_overloaded', 'warning'],
    'an engine that fails': [{ stream: false }, { kind: 'status', status: 500 }, 'engine_failed', 'warning'],
    'an engine that breaks off': [{}, { kind: 'cut', after_tokens: 3 }, 'stream_broken', 'warning'],
    'an engine that is down': [{}, { kind: 'refuse' }, 'engine_unreachable', 'warning'],
  };
  for (const [name, [more, fault, outcome, level]] of Object.entries(cases)) {
    await s.step(name, async () => {
      const id = name.replaceAll(' ', '-');
      if (fault) await sim.fault(fault);
      await send(id, more).finally(() => sim.clearFaults());
      const line = await router.requestLine(id);
      assert.equal(line.outcome, outcome);
      assert.equal(line.level, level, JSON.stringify(line));
    });
  }
  await s.step('a client that leaves', async () => {
    const client = await RawConnection.open(router.address);
    const { requests } = await sim.state();
    await sim.fault({ kind: 'hang_stream', after_tokens: 3 });
    client.write(wire('POST', CHAT, { 'X-Request-Id': 'gone' }, JSON.stringify(chat('Bye'))));
    await until('it runs', async () => (await sim.state()).requests > requests);
    client.destroy();
    const line = await router.requestLine('gone');
    await sim.clearFaults();
    assert.equal(line.outcome, 'client_gone');
    assert.equal(line.level, 'info', JSON.stringify(line));
  });
});

scenario('logs and metrics tell what happened', async (s) => {
  const fleet = await Fleet.start(s);
  const { router } = fleet;
  const body = chat('Count me', { stream_options: { include_usage: true } });
  const { promptTokens, completionTokens } = expectedAnswer(body);
  const send = (id, one) => request(router.address, { path: CHAT, body: JSON.stringify(one), headers: { 'X-Request-Id': id } });
  const answer = await send('good-1', body);
  await send('bad-1', { ...body, model: 'nobody' });
  await s.step('one JSON line per request', async () => {
    const line = await router.requestLine('good-1');
    assert.equal(line.outcome, 'ok');
    assert.equal(line.status, 200);
    assert.equal(line.model, 'demo');
    assert.equal(line.prefill_worker, fleet.of('prefill')[0].address);
    assert.equal(line.decode_worker, fleet.of('decode')[0].address);
    assert.equal(line.prompt_tokens, promptTokens);
    assert.equal(line.completion_tokens, completionTokens);
    assert.equal(line.bytes_in, Buffer.byteLength(JSON.stringify(body)));
    assert.equal(line.bytes_out, Buffer.byteLength(answer.text));
    assert.ok(line.prefill_ms > 0 && line.ttft_ms >= line.prefill_ms && line.total_ms >= line.ttft_ms, JSON.stringify(line));
    assert.equal(router.process.stderr.match(/"good-1"/g).length, 1);
    const failed = await router.requestLine('bad-1');
    assert.equal(failed.outcome, 'model_not_found');
    assert.equal(failed.status, 404);
  });
  await s.step('metrics', async () => {
    const demo = { model: 'demo' };
    const count = (name, labels) => router.metric(`${name}_count`, { ...demo, ...labels });
    await until('the request is counted', async () => (await router.metric('baton_requests_total', { ...demo, outcome: 'ok' })) === 1);
    assert.equal(await router.metric('baton_requests_total', { outcome: 'model_not_found' }), 1);
    assert.equal(await count('baton_time_to_first_token_seconds'), 1);
    assert.equal(await count('baton_request_duration_seconds'), 1);
    assert.ok((await count('baton_inter_token_seconds')) >= completionTokens - 1);
    assert.equal(await count('baton_phase_duration_seconds', { phase: 'prefill' }), 1);
    assert.equal(await router.metric('baton_prompt_tokens_total', demo), promptTokens);
    assert.equal(await router.metric('baton_completion_tokens_total', demo), completionTokens);
    assert.equal(await router.metric('baton_response_bytes_total', demo), Buffer.byteLength(answer.text));
    await until('nothing is in flight', async () => (await router.inFlight()) === 0);
    const text = await fetchText(router.admin, '/metrics');
    for (const { name } of await router.metrics()) {
      assert.match(text, new RegExp(`# HELP ${name.replace(/_(bucket|sum|count)$/, '')}\\b`), `${name} is documented`);
    }
  });
});
