// Processes in containers: pids and network of their own, a directory for sockets and one for files that both sides see.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import test from 'node:test';
import { assertNobodyDied, clients, dropped, producers, python, serveKineto, until } from './lib/kineto.mjs';
import { traced } from './lib/kineto_late.mjs';

const CONTAINER = ['unshare', '--net', '--pid', '--fork', '--mount-proc', '--kill-child'];
const QUICK = { stop: { duration_ms: 100 }, kineto: { warmup_ms: 0 } };
const cannot = spawnSync(CONTAINER[0], [...CONTAINER.slice(1), 'true']).status !== 0 && 'lacks the right to make namespaces';

function sharedDirectory(t) {
  const dir = fs.mkdtempSync('/tmp/tpk-');
  t.after(() => fs.rmSync(dir, { recursive: true }));
  return dir;
}

// The pids of a process, from ours to its own innermost one.
const pidsOf = (pid) => fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/^NSpid:\s+(.*)$/m)[1].split(/\s+/).map(Number);

test('two containers with equal pids are two processes, and both are traced', { skip: cannot }, async (t) => {
  const dir = sharedDirectory(t);
  const server = await serveKineto(t, { args: ['--kineto-socket-dir', dir] });
  const inside = [0, 1].map(() => clients(t, server, { 'socket-dir': dir, events: 7 }, CONTAINER));
  const listed = await producers(server, 2);
  await until('both have asked', () => inside.every((c) => c.of('poll').length > 0));
  const own = inside.map((c) => c.of('poll')[0].pid);
  assert.equal(own[0], own[1], 'their own pids are equal');
  assert.notEqual(listed[0].pid, listed[1].pid);
  for (const p of listed) {
    assert.equal(p.name, `kineto-${p.pid}`);
    assert.deepEqual(pidsOf(p.pid), [p.pid, own[0]], 'the pid is the one that we know it by');
  }
  const end = await traced(server, { require: 2, ...QUICK }, inside);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  assert.deepEqual(end.matched.map((m) => [m.state, m.pid]).sort(), listed.map((p) => ['done', p.pid]).sort());
  for (const m of end.matched) assert.equal(m.counts.stored, 8, 'its own file: its events and its name');
  for (const c of inside) { assert.ok(c.of('file').length >= 1); assertNobodyDied(c); }
});

test('one that dies in its container is told as such', { skip: cannot }, async (t) => {
  const dir = sharedDirectory(t);
  const server = await serveKineto(t, { args: ['--kineto-socket-dir', dir] });
  const c = clients(t, server, { 'socket-dir': dir, 'die-ms': 1 }, CONTAINER);
  await producers(server, 1);
  const end = await traced(server, QUICK, [c]);
  assert.deepEqual(end.matched.map((m) => [m.state, m.reason]), [['lost', 'process ended']]);
  assert.deepEqual(dropped(c), []);
});

// Runs a service with pids of its own, which sees nobody but itself. unshare(1) would not pass SIGTERM on.
const ALONE = ['python3', '-c', `
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x20000000 | 0x20000) or libc.mount(b'none', b'/', None, 0x44000, None): # NEWPID, NEWNS; REC, PRIVATE
    sys.exit('no namespaces')
pid = os.fork()
if pid == 0:
    libc.prctl(1, signal.SIGKILL) # with its parent
    libc.mount(b'proc', b'/proc', b'proc', 0, None)
    os.execv(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`];

test('a service in a container of its own traces processes that it cannot see', { skip: cannot }, async (t) => {
  const dir = sharedDirectory(t);
  const server = await serveKineto(t, { args: ['--kineto-socket-dir', dir], through: ALONE });
  const knobs = { 'socket-dir': dir, events: 7, job: 4242 };
  const all = [[], CONTAINER, CONTAINER].map((through) => clients(t, server, knobs, through));
  const listed = await producers(server, 3);
  await until('all have asked', () => all.every((c) => c.of('poll').length > 0));
  const own = all.map((c) => c.of('poll')[0].pid);
  assert.equal(own[1], own[2], 'two have equal pids');
  // What is known: who they are by socket and uid, and what they say. What is not: a pid of ours, rank, life.
  assert.deepEqual(listed.map((p) => p.name.replace(/-\d+$/, '')).sort(), own.map((pid) => `kineto-c${pid}`).sort());
  for (const p of listed) assert.deepEqual([p.pid, p.rank, p.job], [undefined, undefined, '4242']);
  const end = await traced(server, { job: '4242', require: 3, ...QUICK }, all);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  assert.deepEqual(end.matched.map((m) => [m.state, m.counts.stored]), listed.map(() => ['done', 8]));
  for (const c of all) assertNobodyDied(c);

  await all[0].stop();
  const without = await server.waitFinal((await server.createTrace({ job: '4242', ...QUICK })).id);
  assert.notEqual(without.outcome, 'complete', 'one that has ended unseen asks no more');
  const dead = without.matched.find((m) => m.name.startsWith(`kineto-c${own[0]}-`));
  assert.deepEqual([dead.state, dead.reason], ['refused', 'it asked too late to start with the others']);
});

test('without the directory a container does not find the service, and lives', { skip: cannot }, async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { 'run-ms': 1500 }, CONTAINER);
  await c.ended;
  assert.deepEqual((await server.get('/producers')).json().items, []);
  assertNobodyDied(c);
});

// Binds the path of a process in a mount namespace where that is its own, and asks from there as another user.
const AS_SOMEBODY = `
import ctypes, os, socket, struct, sys
dir, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
theirs = next(f for f in os.listdir(dir) if f.startswith('dynoconfigclient'))
libc = ctypes.CDLL(None, use_errno=True)
real = os.open(dir, os.O_PATH)
if libc.unshare(0x20000) or libc.mount(b'none', b'/', None, 0x44000, None) or libc.mount(b'none', dir.encode(), b'tmpfs', 0, b'mode=1777'):
    sys.exit('no namespaces')
os.setgroups([]); os.setresgid(65532, 65532, 65532); os.setresuid(65532, 65532, 65532)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(dir + '/' + theirs)
body = struct.pack('<iiqi', 2, 1, 0, 1)
for i in range(times):
    s.sendto(struct.pack('<Q', len(body)) + b'req'.ljust(32, b'\\0') + body, '/proc/self/fd/%d/%s' % (real, name))
`;
const BAD = 'traceplane_kineto_datagrams_total\\{answer="none-bad"\\}';

test('who asks from the path of another user gets him no answer, and does not take his place', { skip: cannot }, async (t) => {
  const dir = sharedDirectory(t);
  fs.chmodSync(dir, 0o1777);
  const server = await serveKineto(t, { args: ['--kineto-socket-dir', dir] });
  const c = clients(t, server, { 'socket-dir': dir, 'interval-ms': 500 });
  const [victim] = await producers(server, 1);
  const bad = await server.metric(BAD);
  await python(AS_SOMEBODY, [dir, server.kineto.name, 5]);
  await until('it is counted', async () => (await server.metric(BAD)) >= bad + 5);
  assert.match(server.log, /kineto-not-answered.*no socket of its user.*uid=65532/);
  const polls = c.of('poll').length;
  await until('the other goes on', () => c.of('poll').length > polls + 2);
  assert.deepEqual((await producers(server, 1)).map((p) => [p.id, p.pid]), [[victim.id, victim.pid]]);
  const end = await traced(server, QUICK, [c]);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  assertNobodyDied(c);
});
