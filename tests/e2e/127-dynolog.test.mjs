// The port of dynolog's RPC: scripts that call dyno gputrace get traces, and whoever speaks it badly harms nobody.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { clients, producers, serveKineto, until } from './lib/kineto.mjs';
import { tracedBy } from './lib/kineto_late.mjs';
import { serve, Server, temporaryFolder } from './lib/server.mjs';

const ARGS = ['--dynolog-listen', '127.0.0.1:0'];
const portOf = (server) => until('it listens', () => Number(/dynolog-listening on=127\.0\.0\.1:(\d+)/.exec(server.log)?.[1]));

function framed(text) {
  const body = Buffer.from(text), head = Buffer.alloc(4);
  head.writeInt32LE(body.length);
  return Buffer.concat([head, body]);
}

// Send bytes as they are; resolves with all that came back when the other side has closed. `ends` closes ours after it.
function send(port, bytes, { ends = false, step = bytes.length } = {}) {
  return new Promise((resolve, reject) => {
    const chunks = [], socket = net.connect(port, '127.0.0.1');
    socket.on('data', (d) => chunks.push(d));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks)));
    socket.setNoDelay(true);
    for (let i = 0; i < bytes.length; i += step) socket.write(bytes.subarray(i, i + step));
    if (ends) socket.end();
  });
}

// One call, as a client of dynolog's makes it. An answer is framed exactly; null = closed without one.
async function call(port, request, options) {
  const bytes = await send(port, framed(typeof request === 'string' ? request : JSON.stringify(request)), options);
  if (bytes.length === 0) return null;
  assert.equal(bytes.readInt32LE(0), bytes.length - 4);
  return JSON.parse(bytes.subarray(4).toString());
}

// What `dyno gputrace` sends, byte by byte: its own JSON, a line feed before it, only --profile-memory adds its lines.
const dyno = ({ logFile = '/tmp/trace.json', pids = '0', limit = 3, memory = '', when = 'PROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=200' } = {}) => `
{
    "fn": "setKinetOnDemandRequest",
    "config": "${`ACTIVITIES_LOG_FILE=${logFile}\n${when}\nPROFILE_REPORT_INPUT_SHAPES=false${memory}\nPROFILE_WITH_STACK=true\nPROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false`.replaceAll('\n', '\\n')}",
    "job_id": 0,
    "pids": [${pids}],
    "process_limit": ${limit}
}`;

// What it does with the answer, and where it would stop: "processesMatched" is a list of whole numbers.
function readAsDyno(answer, logFile) {
  assert.ok(Array.isArray(answer.processesMatched) && answer.processesMatched.every(Number.isInteger), JSON.stringify(answer));
  return answer.processesMatched.map((pid) => logFile.replaceAll('.json', `_${pid}.json`));
}

// The same with other lines and members.
const gputrace = (lines = {}, more = {}) => ({
  fn: 'setKinetOnDemandRequest',
  config: Object.entries({ ACTIVITIES_LOG_FILE: '/tmp/trace.json', PROFILE_START_TIME: 0, ACTIVITIES_DURATION_MSECS: 200, PROFILE_REPORT_INPUT_SHAPES: false, PROFILE_PROFILE_MEMORY: false, PROFILE_WITH_STACK: true, PROFILE_WITH_FLOPS: false, PROFILE_WITH_MODULES: false, ACTIVITIES_WARMUP_PERIOD_SECS: 0, ...lines }).map(([k, v]) => `${k}=${v}`).join('\n'),
  job_id: 0, pids: [0], process_limit: 3, ...more,
});

// A request, and the trace that comes of it, to its end.
async function traced(server, port, request, c, options) {
  let answer;
  const end = await tracedBy(server, async () => (answer = await call(port, request, options)).trace_id, [c]);
  return { answer, end };
}

test('a request is a trace of the processes that it names', async (t) => {
  const server = await serveKineto(t, { args: ARGS });
  const port = await portOf(server);
  assert.deepEqual(await call(port, { fn: 'getStatus' }), { status: 1 });
  assert.match((await call(port, { fn: 'getVersion' })).version, /^\d/);
  assert.deepEqual(await call(port, { fn: 'dcgmProfPause', duration_s: 3 }), { status: false });
  const none = await call(port, dyno({ limit: 4, memory: '\nPROFILE_PROFILE_MEMORY=true\nPROFILE_MEMORY=true\nPROFILE_MEMORY_DURATION_MSECS=200' }));
  assert.deepEqual(readAsDyno(none, '/tmp/trace.json'), []);
  assert.deepEqual([none.processesMatched, none.activityProfilersTriggered, none.trace_id], [[], [], undefined]);

  const c = clients(t, server, { count: 3 });
  const pids = (await producers(server, 3)).map((p) => p.pid).sort();
  const waiting = await server.createTrace({ start: { when: 'manual' } });
  const busy = await call(port, gputrace({}, { pids: [pids[0], pids[1]] }));
  assert.deepEqual([...busy.processesMatched].sort(), [pids[0], pids[1]]);
  assert.deepEqual([busy.activityProfilersTriggered, busy.activityProfilersBusy], [[], 2]);
  assert.match(busy.warnings[0], /active/);
  await server.expect('POST', `/traces/${waiting.id}/cancel`, [202]);

  const request = gputrace({ ACTIVITY_TYPES: 'CPU_OP' }, { process_limit: 2 });
  const { answer, end } = await traced(server, port, request, c, { step: 7 });
  assert.deepEqual([...answer.processesMatched].sort(), pids, 'all that match, also beyond the limit');
  assert.equal(answer.activityProfilersTriggered.length, 2);
  assert.deepEqual([answer.eventProfilersTriggered, answer.eventProfilersBusy, answer.activityProfilersBusy], [[], 0, 0]);

  const { trace_id } = answer;
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  assert.equal(end.label, '/tmp/trace.json');
  assert.deepEqual(end.kineto, { record_shapes: false, profile_memory: false, with_stack: true, with_flops: false, with_modules: false, warmup_ms: 0 });
  assert.deepEqual([...new Set(eventsOf(await server.downloadChrome(answer.trace_id)).map((e) => e.cat))], ['cpu_op']);
  const audit = server.log.split('\n').filter((l) => /audit/.test(l) && /setKinetOnDemandRequest/.test(l));
  assert.ok(audit.some((l) => l.includes(trace_id) && /peer=127\.0\.0\.1/.test(l) && /status=201/.test(l)), audit.join('\n'));
  assert.ok(audit.some((l) => /status=409/.test(l) && /problem=trace-active/.test(l)), audit.join('\n'));
});

test('files are where the script expects them, below a directory that is for that, and nowhere else', async (t) => {
  const logs = fs.realpathSync(temporaryFolder());
  t.after(() => fs.rmSync(logs, { recursive: true }));
  const server = await serveKineto(t, { args: [...ARGS, '--dynolog-log-dir', '/nowhere', '--dynolog-log-dir', logs] });
  const port = await portOf(server);
  const c = clients(t, server, { count: 2, events: 7 });
  const pids = (await producers(server, 2)).map((p) => p.pid).sort();
  fs.mkdirSync(`${logs}/sub`);
  fs.symlinkSync('/tmp', `${logs}/link`);

  const own = await traced(server, port, dyno({ logFile: `${logs}/run.json` }), c);
  assert.equal(own.end.outcome, 'complete', JSON.stringify(own.end.matched));
  for (const guess of readAsDyno(own.answer, `${logs}/run.json`)) assert.equal(JSON.parse(fs.readFileSync(guess)).trace_id, own.answer.trace_id);

  const { answer, end } = await traced(server, port, gputrace({ ACTIVITIES_LOG_FILE: `${logs}/./sub//run.pt.trace.json` }), c);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  assert.deepEqual(answer.warnings, []);
  const named = pids.map((pid) => `run_${pid}.pt.trace.json`).sort();
  assert.deepEqual(answer.files.map((f) => path.basename(f)).sort(), named);
  assert.deepEqual(fs.readdirSync(`${logs}/sub`).sort(), named, 'and nothing else');
  for (const file of answer.files) {
    assert.equal(JSON.parse(fs.readFileSync(file)).trace_id, answer.trace_id, 'as the process wrote it');
    assert.equal(fs.statSync(file).mode & 0o777, 0o644);
  }

  const through = await traced(server, port, gputrace({ ACTIVITIES_LOG_FILE: `${logs}/link/run.json` }, { pids: [pids[0]] }), c);
  assert.deepEqual(through.end.matched.filter((m) => m.pid === pids[0]).map((m) => [m.state, m.reason]),
    [['done', 'no file at its log file: cannot open its directory: Not a directory']]);
  assert.equal(through.end.outcome, 'complete');

  for (const file of [`${logs}/../x.json`, '/tmp/x.json', 'x.json', `${logs}/`]) {
    const { trace_id, files, warnings } = await call(port, gputrace({ ACTIVITIES_LOG_FILE: file }));
    assert.equal(files, undefined, file);
    assert.match(warnings.join(), /no file will be at .*; GET \/traces\/\w+\/download has all of them/);
    await server.expect('POST', `/traces/${trace_id}/cancel`, [202]);
  }
});

test('by iterations, and in the job of its Slurm id', async (t) => {
  const server = await serveKineto(t, { args: ARGS });
  const port = await portOf(server);
  const c = clients(t, server, { job: 4242, 'step-ms': 20 });
  await producers(server, 1);
  assert.deepEqual((await call(port, gputrace())).processesMatched, [], 'job 0 is not all jobs');
  const config = 'ACTIVITIES_LOG_FILE=/tmp/t.json\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=10\nACTIVITIES_ITERATIONS=5';
  assert.deepEqual(readAsDyno(await call(port, dyno({ when: config.slice(config.indexOf('\n') + 1) })), '/tmp/trace.json'), []);
  const { end } = await traced(server, port, gputrace({}, { config, job_id: 4242, pids: [] }), c);
  assert.equal(end.job, '4242');
  assert.ok(c.of('file').length >= 1);
});

test('what cannot be done is told by name, and nothing is made', async (t) => {
  const server = await serveKineto(t, { args: ARGS });
  const port = await portOf(server);
  clients(t, server);
  await producers(server, 1);
  for (const [request, words] of [[gputrace({ NPU_MONITOR_START: true }), /NPU_MONITOR_START' is not supported/], [gputrace({ ACTIVITIES_DURATION_MSECS: -1 }), /ACTIVITIES_DURATION_MSECS cannot be '-1'/],
    [gputrace({ ACTIVITY_TYPES: 'cpu_oops' }), /cpu_oops/], [gputrace({}, { pids: 'all' }), /pids/], [gputrace({}, { pids: undefined }), /'pids' are needed/],
    [gputrace({}, { process_limit: 0 }), /process_limit/], [gputrace({}, { config: 5 }), /config/], [gputrace({}, { job_id: -1 }), /job_id/]]) {
    const { status } = await call(port, request);
    assert.match(status, /^failed: /);
    assert.match(status, words);
  }
  assert.deepEqual((await server.get('/traces')).json().items, []);
});

test('bad messages and slow clients harm nobody', async (t) => {
  const server = await serveKineto(t, { args: ARGS });
  const port = await portOf(server);
  for (const text of ['{', '[]', '7', '"fn"', '{"fn":7}', '{}', '{"fn":"shutdown"}', '{"fn":"getStatus"}x', `{"fn":${'['.repeat(3000)}`, '\0', '{"fn":"get\xffStatus"}'])
    assert.equal(await call(port, text), null, text.slice(0, 40));
  for (const size of [0, -1, -2147483648, 65537, 2147483647]) {
    const head = Buffer.alloc(4);
    head.writeInt32LE(size);
    assert.equal((await send(port, head)).length, 0, `a size of ${size}`);
  }
  assert.equal((await send(port, framed('{"fn":"getStatus"}').subarray(0, 9), { ends: true })).length, 0, 'cut short');
  assert.equal((await send(port, Buffer.alloc(2), { ends: true })).length, 0);
  assert.deepEqual(await call(port, `{"fn":"getStatus","more":"${'x'.repeat(65000)}"}`), { status: 1 }, 'almost the most');

  // All places are taken by clients that say nothing; they lose them, and there is an answer again.
  const silent = Array.from({ length: 80 }, () => net.connect(port, '127.0.0.1').on('error', () => {}));
  t.after(() => silent.forEach((s) => s.destroy()));
  await until('there is a place again', () => call(port, { fn: 'getStatus' }).catch(() => null), 60000);
  await Promise.all(silent.map((s) => new Promise((r) => (s.closed || s.destroyed ? r() : s.once('close', r).resume()))));
  assert.equal((await server.get('/healthz')).status, 200);
});

test('nowhere but on loopback, and nowhere at all unless it is asked for', async (t) => {
  for (const dir of ['relative', '/a/../b'])
    await assert.rejects(Server.start({ args: ['--kineto-socket', 'x', '--dynolog-log-dir', dir] }), /dynolog-log-dir/);
  for (const address of ['0.0.0.0:0', '[::]:0', '192.0.2.1:1778', 'nonsense'])
    await assert.rejects(Server.start({ args: ['--dynolog-listen', address] }), address);
  const server = await serve(t, {});
  assert.doesNotMatch(server.log, /dynolog-listening/);
});
