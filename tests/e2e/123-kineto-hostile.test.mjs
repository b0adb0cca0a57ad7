// Whatever one process sends, the service lives, others are answered, and nobody gets what would end him.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { assertNobodyDied, asUser, clients, foldersOf, producers, python, serveKineto, until } from './lib/kineto.mjs';
import { tracedBy } from './lib/kineto_late.mjs';

const FLOODED = 'traceplane_kineto_datagrams_total\\{answer="none-flood"\\}';
const PRELUDE = `
import os, socket, struct, sys, time
name = b'\\0' + sys.argv[1].encode() + b'\\0'
def bound(tag):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(b'\\0dynoconfigclient-' + tag.encode() + str(os.getpid()).encode() + b'\\0')
    s.settimeout(1)
    return s
def req(kind=2, pids=(1,), n=None, size=None):
    body = struct.pack('<iiq', kind, len(pids) if n is None else n, 0) + b''.join(struct.pack('<i', p) for p in pids)
    return struct.pack('<Q', len(body) if size is None else size) + b'req'.ljust(32, b'\\0') + body
`;

test('datagrams that are none, too short, too long or lie are not answered, and do no harm', async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { 'interval-ms': 500 });
  await producers(server, 1);
  const answered = JSON.parse(await python(`${PRELUDE}
import json
s = bound('a')
bad = [b'', b'x', b'x' * 39, b'\\xff' * 40, req()[:-1], req() + b'y', req(n=65), req(n=-1), req(n=2**31 - 1), req(size=2**63), req(size=2**64 - 1),
       req(pids=range(64)) + b'z' * 4000, struct.pack('<Q', 16) + b'q' * 48, os.urandom(300)]
out = []
for b in bad:
    s.sendto(b, name)
    s.settimeout(0.1)
    try: out.append(len(s.recv(65536)))
    except TimeoutError: out.append(None)
u = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
u.sendto(req(), name)  # from nowhere: there is nobody to answer
r, w = os.pipe()
s.sendmsg([req()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('ii', r, w))], 0, name)  # descriptors are not taken
s.settimeout(60)
out.append(len(s.recv(65536)))
s.sendto(req(pids=()), name)
out.append(len(s.recv(65536)))
print(json.dumps(out))`, [server.kineto.name]));
  assert.deepEqual(answered.slice(0, -2), Array(answered.length - 2).fill(null));
  assert.deepEqual(answered.slice(-2), [40, 40]);
  const before = c.of('poll').length;
  await until('others are answered', () => c.of('poll').slice(before).filter((p) => p.bytes === 0).length > 2);
  // An answer may be late on a busy machine; nobody gets another's.
  assert.ok(c.of('poll').every((p) => p.bytes <= 0), JSON.stringify(c.of('poll')));
  assertNobodyDied(c);
});

test('a flood from one process keeps nobody from being answered', async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { count: 5, 'interval-ms': 300 });
  await producers(server, 5);
  const flood = python(`${PRELUDE}
s = bound('flood')
s.setblocking(False)
end, n, d = time.time() + 120, 0, req()
while time.time() < end and not os.path.exists(sys.argv[2]):
    for i in range(200):
        try:
            s.sendto(d, name)
            n += 1
        except BlockingIOError:
            pass
print(n)`, [server.kineto.name, path.join(server.kineto.traceDir, 'enough')]);
  await until('the flood is there', async () => (await server.metric(FLOODED)) > 1000);
  const begin = Date.now(), before = c.of('poll').length;
  // Each of them, however few processors there are; how often is a figure and no promise.
  const answered = (n) => c.of('poll').slice(before).filter((p) => p.client === n && p.bytes >= 0).length;
  await until('all others are answered three times', () => [0, 1, 2, 3, 4].every((n) => answered(n) >= 3), 100000);
  const ms = Date.now() - begin, polls = c.of('poll').slice(before);
  fs.writeFileSync(path.join(server.kineto.traceDir, 'enough'), '');
  const sent = Number(await flood);
  assert.ok((await server.metric(FLOODED)) > sent / 2, 'most of it was thrown away');
  t.diagnostic(`${sent} datagrams came through; in ${ms} ms of it ${polls.length} polls of others, the slowest took ${Math.max(...polls.map((p) => p.us))} us`);
  assert.equal(await server.metric('traceplane_kineto_processes'), 6);
  await producers(server, 5);
  assertNobodyDied(c);
});

test('a process of another user is listed and not traced, unless that is allowed', { skip: process.getuid() !== 0 && 'needs root to be another user' }, async (t) => {
  const strict = await serveKineto(t);
  const c = clients(t, strict, { uid: 65534 });
  await producers(strict, 1);
  const trace = (await strict.expect('POST', '/traces', [200], { body: { dry_run: true } })).json();
  assert.match(trace.unmatched[0].reason, /not allowed: it belongs to user 65534/);
  await c.stop();

  const dir = fs.mkdtempSync('/tmp/tpk-'); // which others can go through, unlike the folder of the test
  fs.chmodSync(dir, 0o711);
  t.after(() => fs.rmSync(dir, { recursive: true }));
  const open = await serveKineto(t, { args: ['--kineto-allow-uid', '65534'], kineto: { ...strict.kineto, name: `${strict.kineto.name}-open`, traceDir: `${dir}/files` } });
  const other = clients(t, open, { uid: 65534, early: 1, 'interval-ms': 1000 });
  await producers(open, 1);
  await until('its rhythm is known', () => other.of('poll').length >= 4);
  // It asks many times before the start: one request that comes before its folder is made, which takes as long as the
  // machine is busy, misses nothing.
  const asked = () => ({ start: { at: new Date(Date.now() + 8000).toISOString() }, stop: { duration_ms: 100 }, kineto: { warmup_ms: 0 } });
  const end = await tracedBy(open, async () => (await open.createTrace(asked())).id, [other]);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
});

// Everybody may write where such a process does, so nobody else may come to know where that is.
test('where a process of another user writes is told to nobody', { skip: process.getuid() !== 0 && 'needs root to be three other users' }, async (t) => {
  const dir = foldersOf(t, 65533);
  const options = { dataDir: `${dir}/data`, args: ['--kineto-allow-uid', '65534'], through: asUser(65533), kineto: { name: `tp-e2e-${process.pid}-where`, traceDir: `${dir}/files` } };
  const server = await serveKineto(t, options);
  const c = clients(t, server, { 'interval-ms': 500, uid: 65534, early: 1 });
  await producers(server, 1);
  const trace = await server.createTrace({ start: { at: new Date(Date.now() + 7000).toISOString() }, stop: { duration_ms: 100 }, kineto: { warmup_ms: 0 } });
  const home = path.join(`${dir}/files`, fs.readdirSync(`${dir}/files`)[0]);
  const folder = await until('its folder is made', () => fs.readdirSync(home)[0]);
  const guess = `${trace.id}-${trace.matched[0].id}`;
  assert.match(folder, new RegExp(`^${guess}-[0-9a-f]{32}$`));
  const key = folder.slice(guess.length + 1);
  const seen = await python(`
import os, sys
os.setgroups([]); os.setresgid(65532, 65532, 65532); os.setresuid(65532, 65532, 65532)
for path in sys.argv[1:3]:
    try: print(os.listdir(path))
    except PermissionError: print('closed')
print(os.path.exists(os.path.join(sys.argv[2], sys.argv[3])))`, [`${dir}/files`, home, guess]);
  assert.equal(seen, 'closed\nclosed\nFalse\n');
  const told = async (paths) => { for (const p of paths) assert.ok(!(await server.get(p)).body.includes(key), p); };
  const shown = [`/traces/${trace.id}`, '/traces', '/producers?limit=1000', '/metrics', '/readyz'];
  await told(shown);
  const end = await server.waitFinal(trace.id);
  assert.equal(end.outcome, 'complete', JSON.stringify([end.matched, c.events]));
  await told([...shown, `/traces/${trace.id}/download`, `/traces/${trace.id}/download?format=perfetto`, `/traces/${trace.id}/summary`]);
  assert.ok(!server.log.includes(key), 'the log');
});
