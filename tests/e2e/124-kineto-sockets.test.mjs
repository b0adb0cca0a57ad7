// Where the service listens for PyTorch processes: a name, directories, both; and when somebody is there already.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { assertNobodyDied, clients, producers, python, serveKineto, until } from './lib/kineto.mjs';
import { traced } from './lib/kineto_late.mjs';
import { serve, temporaryFolder } from './lib/server.mjs';

test('directories work beside the name, as containers need them', async (t) => {
  const dir = fs.mkdtempSync('/tmp/tpk-');
  t.after(() => fs.rmSync(dir, { recursive: true }));
  const server = await serveKineto(t, { args: ['--kineto-socket-dir', dir] });
  const inDir = clients(t, server, { 'socket-dir': dir }), byName = clients(t, server);
  await producers(server, 2);
  const end = await traced(server, { stop: { duration_ms: 100 }, kineto: { warmup_ms: 0 } }, [inDir, byName]);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  for (const c of [inDir, byName]) assertNobodyDied(c);
  await server.stop();
  const left = fs.readdirSync(dir);
  assert.ok(left.every((f) => f.startsWith('dynoconfigclient')), `the service has left ${left}`);
});

test('what processes have left in a directory is removed', async (t) => {
  const dir = fs.mkdtempSync('/tmp/tpk-');
  t.after(() => fs.rmSync(dir, { recursive: true }));
  await python("import socket, sys\nfor n in ('dynoconfigclientdead', 'other'):\n    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(sys.argv[1] + '/' + n)", [dir]);
  fs.lutimesSync(path.join(dir, 'dynoconfigclientdead'), 1000, 1000); // one that was just made is nobody's litter yet
  await serveKineto(t, { args: ['--kineto-socket-dir', dir] });
  await until('the dead socket is gone', () => !fs.existsSync(path.join(dir, 'dynoconfigclientdead')));
  assert.ok(fs.existsSync(path.join(dir, 'other')), 'it is somebody else\'s');
});

const degraded = async (server) => (await server.expect('GET', '/readyz', [200])).json().degraded;

test('a path that was removed is bound again, and a directory that is gone is told until it is back', async (t) => {
  const dir = fs.mkdtempSync('/tmp/tpk-');
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  const server = await serveKineto(t, { args: ['--kineto-socket-dir', dir] });
  const socket = path.join(dir, server.kineto.name);
  assert.equal(await degraded(server), undefined);
  fs.rmSync(socket);
  await until('it is bound again', () => fs.existsSync(socket));
  const c = clients(t, server, { 'socket-dir': dir });
  await producers(server, 1);
  await c.stop();
  fs.rmSync(dir, { recursive: true });
  const [why] = await until('it is told', () => degraded(server));
  assert.match(why, /^some Kineto processes are not heard: cannot bind .*No such file/);
  assert.equal(await server.metric('traceplane_kineto_sockets_usable'), 0);
  fs.mkdirSync(dir);
  await until('it is heard again', async () => (await degraded(server)) === undefined);
  assert.equal(await server.metric('traceplane_kineto_sockets_usable'), 1);
});

test('a name that is taken is told, and the service runs', async (t) => {
  const first = await serveKineto(t);
  const second = await serveKineto(t, { kineto: { ...first.kineto, traceDir: path.join(temporaryFolder(), 'files') } });
  await until('the log says so', () => /kineto-socket-unavailable.*taken: a dynolog/.test(second.log));
  assert.equal((await second.get('/healthz')).status, 200);
  assert.match((await degraded(second))[0], /taken: a dynolog or another traceplaned runs/);
  assert.equal(await degraded(first), undefined);
  clients(t, first);
  await producers(first, 1);
  assert.deepEqual((await second.get('/producers')).json().items, []);
});

test('without a name nobody is listened for', async (t) => {
  const server = await serve(t, { args: ['--kineto-socket', ''] });
  const said = server.log.replaceAll(/data_dir=\S+/g, ''); // its name has the scenario's in it
  assert.doesNotMatch(said, /kineto/);
});
