// A PyTorch process that is linked with the library, too, is one process of the trace; what either of its producers knows of the job serves both.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import path from 'node:path';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { clients, producers, serveKineto, until } from './lib/kineto.mjs';
import { listen, traced } from './lib/kineto_late.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { BINARY, temporaryFolder } from './lib/server.mjs';

// A connection that waits for the judge to be compiled would be closed meanwhile.
async function start(t, options) {
  const server = await serveKineto(t, options);
  server.agent = new http.Agent();
  server.joined = [];
  return server;
}
const JOINED = path.join(path.dirname(BINARY), 'e2e/joined');
const clean = Object.fromEntries(Object.entries(process.env).filter(([k]) => !/^(RANK|WORLD_SIZE|SLURM_|OMPI_|PMI_|TRACEPLANE_)/.test(k)));

// Start one; it is listed twice when this resolves.
async function joined(t, server, knobs = {}, env = {}, url = `http://127.0.0.1:${server.port}`) {
  const args = Object.entries({ name: server.kineto.name, ...knobs }).flatMap(([k, v]) => [`--${k}`, String(v)]);
  const child = spawn(JOINED, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...clean, TRACEPLANE_URL: url, ...env } });
  server.joined.push(listen(child));
  t.after(() => child.kill('SIGKILL'));
  await until('both are listed', async () => (await listed(server)).filter((p) => p.pid === child.pid).length === 2);
  return child.pid;
}
const listed = async (server) => (await server.get('/producers')).json().items;

// A trace of all that joined() has started.
async function record(server, request = {}, outcome = 'complete') {
  const end = await traced(server, { require: 'all', stop: { duration_ms: 300 }, kineto: { warmup_ms: 0 }, ...request }, server.joined);
  assert.equal(end.outcome, outcome, `${end.reason} ${end.matched.map((m) => [m.kind, m.state, m.reason].join(' ')).join('; ')}`);
  return { end, chrome: await server.downloadChrome(end.id), id: end.id };
}
const of = (items, kind) => items.find((p) => p.kind === kind);
const judge = async (server, id) => {
  const tp = await TraceProcessor.load(await server.download(id, '?format=perfetto'));
  assert.deepEqual(await tp.errors(), []);
  return tp;
};

test('native events and Kineto file are one process, in both formats', async (t) => {
  const server = await start(t);
  const pid = await joined(t, server, { rank: 3, world: 8 });
  const { end, chrome, id } = await record(server);
  const [native, kineto] = [of(end.matched, 'native'), of(end.matched, 'kineto')];
  assert.equal(native.joined_with, kineto.id);
  assert.equal(kineto.joined_with, native.id);
  assert.equal(kineto.rank, 3, 'the rank of the native one');
  assert.equal(kineto.world_size, 8);
  for (const p of chrome.traceplane.producers) assert.equal(p.rank, 3);
  assert.deepEqual([chrome.distributedInfo.rank, chrome.distributedInfo.world_size], [3, 8]);
  assert.match(await (await server.download(id)).toString(), /^ *"rank": 3,?$/m, 'on a line of its own, for HTA');
  assert.equal(chrome.trace_id, id, 'members of the file are where its readers look for them');

  const work = eventsOf(chrome).filter((e) => e.cat === 'e2e.WORK'), ops = eventsOf(chrome).filter((e) => e.cat === 'cpu_op');
  assert.ok(work.length > 10 && ops.length === 5, `${work.length} ${ops.length}`);
  assert.deepEqual(new Set([...work, ...ops, ...eventsOf(chrome).filter((e) => e.ph === 'C')].map((e) => e.pid)), new Set([pid]));
  assert.equal(new Set(work.map((e) => e.tid)).size, 1);
  assert.notEqual(work[0].tid, ops[0].tid, 'the rows of one thread stay apart: their slices need not nest');
  assert.notEqual(eventsOf(chrome).find((e) => e.cat === 'kernel').pid, pid, 'a device is no part of it');
  const names = chrome.traceEvents.filter((e) => e.ph === 'M' && e.name === 'process_name' && e.pid === pid);
  assert.deepEqual(names.map((e) => e.args.name), ['python']);

  const tp = await judge(server, id);
  const rows = await tp.query("select distinct p.upid, p.pid, p.name, s.category as cat from slice s join thread_track t on s.track_id = t.id join thread using (utid) join process p using (upid) where s.category in ('e2e.WORK', 'cpu_op', 'kernel')");
  const upids = new Set(rows.filter((r) => r.cat !== 'kernel').map((r) => `${r.upid} ${r.pid}`));
  assert.equal(upids.size, 1, [...upids].join());
  assert.equal(Number(rows.find((r) => r.cat === 'cpu_op').pid), pid);
  assert.match(rows.find((r) => r.cat === 'e2e.WORK').name, /rank 3: python/);
  assert.equal(Number((await tp.query("select count(*) as n from slice where category in ('e2e.WORK', 'cpu_op')"))[0].n), work.length + ops.length, 'no slice is lost');
  const counters = await tp.query('select distinct p.pid from counter c join process_counter_track t on c.track_id = t.id join process p using (upid)');
  assert.deepEqual(counters.map((c) => Number(c.pid)), [pid]);
});

test('the environment of the process tells a native producer that does not know its rank', async (t) => {
  const server = await start(t);
  await joined(t, server, { 'hides-env': 1 }, { RANK: '5', WORLD_SIZE: '6' });
  assert.equal(of(await listed(server), 'native').rank, undefined);
  const { end, chrome } = await record(server, { select: { ranks: [5] } });
  assert.deepEqual(end.matched.map((m) => m.rank), [5, 5]);
  assert.deepEqual([chrome.distributedInfo.rank, chrome.distributedInfo.world_size], [5, 6]);
});

test('the file tells when nobody else does', async (t) => {
  const server = await start(t);
  await joined(t, server, { 'writes-rank': 2, 'writes-world': 4 });
  const { end, chrome } = await record(server);
  assert.deepEqual(end.matched.map((m) => [m.rank, m.world_size]), [[2, 4], [2, 4]]);
  const { rank, world_size, backend, pg_count } = chrome.distributedInfo;
  assert.deepEqual({ rank, world_size, backend, pg_count }, { rank: 2, world_size: 4, backend: 'nccl', pg_count: 1 });
});

test('when they disagree, trace and view say so, and nobody guesses', async (t) => {
  const server = await start(t);
  const pid = await joined(t, server, { rank: 3, world: 8, 'writes-rank': 7, 'writes-world': 8 }, { RANK: '5', WORLD_SIZE: '8' });
  const { end, chrome } = await record(server);
  assert.match(of(end.matched, 'native').join_note, /rank 3 here, 5 as kineto-/);
  assert.match(of(end.matched, 'kineto').join_note, /rank 5 here, 3 as /);
  assert.match(of(chrome.traceplane.producers, 'kineto').join_note, /rank 5 here, 3 as /);
  assert.match(of(chrome.traceplane.producers, 'kineto').reason, /its file says rank 7, its process was started as 5/);
  assert.equal(chrome.distributedInfo.rank, undefined);
  assert.deepEqual(chrome.distributedInfo.ranks, [3, 5]);
  assert.equal(chrome.distributedInfo.world_size, 8);
  assert.deepEqual(new Set(eventsOf(chrome).filter((e) => e.cat !== 'kernel').map((e) => e.pid)), new Set([pid]), 'it is one process all the same');
});

test('two such processes of one job are two, with devices of their own', async (t) => {
  const server = await start(t);
  const pids = [await joined(t, server, { rank: 0, world: 2 }), await joined(t, server, { rank: 1, world: 2 })];
  const { chrome, id } = await record(server);
  assert.deepEqual(chrome.distributedInfo.ranks, [0, 1]);
  for (const cat of ['cpu_op', 'e2e.WORK']) assert.deepEqual(new Set(eventsOf(chrome).filter((e) => e.cat === cat).map((e) => e.pid)), new Set(pids), cat);
  assert.equal(new Set(eventsOf(chrome).filter((e) => e.cat === 'kernel').map((e) => e.pid)).size, 2);
  const tp = await judge(server, id);
  const rows = await tp.query("select p.pid, p.name, count(distinct s.category) as n from slice s join thread_track t on s.track_id = t.id join thread using (utid) join process p using (upid) where s.category in ('e2e.WORK', 'cpu_op') group by p.upid order by p.name");
  assert.deepEqual(rows.map((r) => [Number(r.pid), Number(r.n), r.name]), pids.map((p, i) => [p, 2, `rank ${i}: python`]));
});

test('over a unix socket the kernel says who a native producer is', async (t) => {
  const socket = path.join(temporaryFolder(), 'tp.sock');
  const server = await start(t, { args: ['--listen', `unix:${socket}`] });
  const pid = await joined(t, server, { rank: 1 }, {}, `unix:${socket}`);
  // What another process says that it is, is not believed there, and by TCP only as far as nothing speaks against it.
  const claim = { name: 'liar', kind: 'native', host: of(await listed(server), 'kineto').host, pid, rank: 9 };
  await curlUnix(socket, claim);
  const { end, chrome } = await record(server, { require: 'any' }, 'partial'); // the liar records nothing
  const liar = end.matched.find((m) => m.name === 'liar');
  assert.equal(liar.joined_with, undefined);
  assert.match(liar.join_note, /not joined with .*, but is another process/);
  assert.equal(of(end.matched, 'kineto').rank, 1);
  assert.equal(of(chrome.traceplane.producers, 'kineto').joined_with, end.matched.find((m) => m.kind === 'native' && m.name !== 'liar').id);
});

test('two containers have the same pid, and each is the process that it is', async (t) => {
  if (process.getuid() !== 0) return t.skip('only root can make a pid namespace');
  const server = await start(t);
  for (const rank of [0, 1]) {
    const args = ['-pf', '--mount-proc', '--kill-child', 'sh', '-c', '"$0" "$@"; exit', JOINED, '--name', server.kineto.name, '--rank', rank, '--world', 2];
    const child = spawn('unshare', args.map(String), { stdio: ['pipe', 'pipe', 'inherit'], env: { ...clean, TRACEPLANE_URL: `http://127.0.0.1:${server.port}` } });
    server.joined.push(listen(child));
    t.after(() => child.kill('SIGKILL'));
  }
  await until('both are listed twice', async () => (await listed(server)).length === 4);
  const pids = new Set((await listed(server)).filter((p) => p.kind === 'native').map((p) => p.pid));
  assert.equal(pids.size, 1, 'they have the same pid, each in its namespace');
  const { end, chrome } = await record(server);
  for (const p of end.matched) {
    assert.equal(p.join_note, undefined);
    const other = end.matched.find((m) => m.id === p.joined_with);
    assert.notEqual(other.kind, p.kind);
    assert.equal(other.rank, p.rank);
  }
  const processes = new Set(eventsOf(chrome).filter((e) => e.cat === 'cpu_op').map((e) => e.pid));
  assert.equal(processes.size, 2);
  assert.deepEqual(new Set(eventsOf(chrome).filter((e) => e.cat === 'e2e.WORK').map((e) => e.pid)), processes);
});

test('a producer without a key is joined by host and pid, unless another has them, too', async (t) => {
  const server = await start(t);
  clients(t, server);
  const [kineto] = await producers(server, 1);
  const native = (name) => server.expect('POST', '/producers', [201], { body: { name, kind: 'native', host: kineto.host, pid: kineto.pid, rank: 6, world_size: 7 } });
  await native('first');
  const dry = async () => (await server.expect('POST', '/traces', [200, 201], { body: { dry_run: true } })).json().matched;
  assert.equal(of(await dry(), 'kineto').rank, 6);
  await native('second');
  const matched = await dry();
  assert.equal(of(matched, 'kineto').rank, undefined);
  assert.match(of(matched, 'kineto').join_note, /others have the same host and pid, too/);
});

function curlUnix(socket, body) {
  return new Promise((resolve, reject) => {
    const child = spawn('curl', ['-sf', '--unix-socket', socket, 'http://localhost/producers', '-d', JSON.stringify(body)], { stdio: 'ignore' });
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`curl ended with ${code}`))));
  });
}
