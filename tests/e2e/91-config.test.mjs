// Settings: flags over environment over file; mistakes are one clear sentence and an exit.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { BINARY, Server, serve, temporaryFolder } from './lib/server.mjs';

function folder(t) {
  const dir = temporaryFolder();
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}
const run = (args, env = {}) => spawnSync(BINARY, args, { encoding: 'utf8', timeout: 100000, env: { ...process.env, ...env } });

// It ends with a failure and says why in one line, without a trace of a crash.
function fails(args, words, env) {
  const r = run(args, env);
  const text = (r.stderr + r.stdout).trim();
  assert.ok(r.status > 0 && r.status < 128, `${args}: ${r.status} ${r.signal} ${text}`);
  assert.match(text, words);
  assert.equal(text.split('\n').length, 1, text);
}

test('a flag wins over the environment, and that over the file', async (t) => {
  const dir = folder(t), config = path.join(dir, 'traceplane.conf');
  fs.writeFileSync(config, '# limits\nmax-types-per-job = 1\nmax-jobs = 7\n\nmax-active-traces = 5\n');
  const printed = run(['--config', config, '--max-types-per-job', '3', '--print-config', '--data-dir', dir], { TRACEPLANE_MAX_TYPES_PER_JOB: '2', TRACEPLANE_MAX_JOBS: '8' });
  assert.equal(printed.status, 0, printed.stderr);
  const value = (name) => new RegExp(`^${name}\\s*=\\s*(\\S*)`, 'm').exec(printed.stdout)?.[1];
  assert.deepEqual(['max-types-per-job', 'max-jobs', 'max-active-traces'].map(value), ['3', '8', '5'], printed.stdout);
  const server = await serve(t, { env: { TRACEPLANE_MAX_TYPES_PER_JOB: '1' } });
  await server.registerTypes(['a.B']);
  assert.equal((await server.request('POST', '/types', { body: { plugin: 'a', type_name: 'C' } })).json().max, 1);
});

test('what is printed is a file that gives the same settings', (t) => {
  const dir = folder(t), copy = path.join(dir, 'copy.conf');
  const first = run(['--print-config', '--data-dir', dir, '--max-jobs', '5', '--listen', '127.0.0.1:1', '--listen', 'unix:/tmp/x']);
  fs.writeFileSync(copy, first.stdout);
  assert.equal(run(['--config', copy, '--print-config']).stdout, first.stdout);
});

test('mistakes are told in a sentence', (t) => {
  const dir = folder(t), config = path.join(dir, 'bad.conf');
  fails(['--max-type-per-job', '1'], /max-types-per-job/);
  fails(['--data-dri', 'x'], /data-dir/);
  fails(['--max-jobs'], /value/);
  fails(['--max-jobs', 'many', '--data-dir', dir], /many/);
  fails(['--max-jobs', '0', '--data-dir', dir], /max-jobs/);
  fails(['--on-collision', 'panic', '--data-dir', dir], /reject.*probe|panic/);
  fails(['serve'], /serve/);
  fails(['--config', path.join(dir, 'none')], /none/);
  fs.writeFileSync(config, 'max-jobs = 1\nmax-jbos = 2\n');
  fails(['--config', config, '--data-dir', dir], /line 2.*max-jobs/);
  fails(['--data-dir', dir], /max-jobs/, { TRACEPLANE_MAX_JOBS: 'x' });
});

test('an address that is not of this machine alone is refused', (t) => {
  const dir = folder(t);
  for (const listen of ['0.0.0.0:0', '[::]:0', '192.0.2.1:8750']) fails(['--listen', listen, '--data-dir', dir], /loopback/);
  fails(['--listen', 'nonsense:port', '--data-dir', dir], /nonsense/);
});

test('a port that is taken is named', async (t) => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  await new Promise((r) => taken.on('listening', r));
  t.after(() => taken.close());
  fails(['--listen', `127.0.0.1:${taken.address().port}`, '--data-dir', folder(t)], new RegExp(`${taken.address().port}.*in use`));
});

test('a data directory that cannot be used is named', (t) => {
  const dir = folder(t), file = path.join(dir, 'file');
  fs.writeFileSync(file, '');
  fails(['--listen', '127.0.0.1:0', '--data-dir', path.join(file, 'x')], /file/);
});

test('a store that cannot be used is named', (t) => {
  const dir = folder(t), junk = path.join(dir, 'junk.db');
  const start = (store, words) => fails(['--listen', '127.0.0.1:0', '--data-dir', path.join(dir, 'data'), '--store', store], words);
  fs.writeFileSync(junk, 'x'.repeat(10000));
  start(`sqlite:${junk}`, /junk\.db.*not an SQLite database/);
  start(`sqlite:${path.join(dir, 'none', 'x.db')}`, /none.x\.db.*cannot open the store/);
  start('mysql://host', /mysql.*sqlite:PATH/);
});

test('help and version end at once', () => {
  for (const flag of ['--help', '--version']) assert.equal(run([flag]).status, 0, flag);
  assert.match(run(['--version']).stdout, /^traceplaned \d/);
  for (const name of ['--listen', '--data-dir', '--on-collision', '--max-trace-bytes']) assert.ok(run(['--help']).stdout.includes(name), name);
});

test('a unix socket serves, and a ready file tells the addresses', async (t) => {
  const dir = folder(t), socketPath = path.join(dir, 's'), ready = path.join(dir, 'ready');
  const server = await serve(t, { args: ['--listen', `unix:${socketPath}`, '--ready-file', ready] });
  const status = await new Promise((resolve, reject) => http.get({ socketPath, path: '/healthz' }, (r) => { r.resume(); r.on('end', () => resolve(r.statusCode)); }).on('error', reject));
  assert.equal(status, 200);
  const lines = fs.readFileSync(ready, 'utf8').trim().split('\n');
  assert.ok(lines.some((l) => l.includes(String(server.port))) && lines.some((l) => l.includes(socketPath)), String(lines));
  assert.equal(fs.statSync(socketPath).mode & 0o007, 0, 'others may not connect');
  fails(['--listen', `127.0.0.1:${server.port}`, '--ready-file', ready, '--data-dir', path.join(dir, 'other')], /in use/);
  fails(['--listen', '127.0.0.1:0', '--ready-file', ready, '--data-dir', server.dataDir], /another traceplaned uses/);
  assert.ok(fs.existsSync(ready), 'a second start by mistake leaves the ready file of the first alone');
  await server.terminate();
  assert.ok(!fs.existsSync(socketPath), 'the socket is removed');
  assert.ok(!fs.existsSync(ready), 'the ready file is removed');
});

test('SIGINT ends it as SIGTERM does', async () => {
  const server = await Server.start();
  server.agent.destroy();
  server.process.kill('SIGINT');
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  fs.rmSync(server.dataDir, { recursive: true });
});

test('with few descriptors there are fewer connections, the log says so, and all are answered', async (t) => {
  const server = await serve(t, { through: ['sh', '-c', 'ulimit -n 256 && exec "$0" "$@"'] });
  const sockets = [];
  t.after(() => sockets.forEach((s) => s.destroy()));
  const statuses = { 200: 0, 503: 0 };
  for (let i = 0; i < 300; i++) {
    const socket = net.connect(server.port, '127.0.0.1');
    sockets.push(socket);
    socket.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`);
    const answer = await new Promise((resolve, reject) => {
      socket.once('data', resolve).once('error', reject).setTimeout(60000, () => reject(new Error(`connection ${i} is not answered`)));
    });
    statuses[/^HTTP\/1.1 (\d+)/.exec(answer)[1]]++;
  }
  assert.ok(statuses[200] > 100 && statuses[200] <= 192 && statuses[200] + statuses[503] === 300, JSON.stringify(statuses));
  assert.match(server.log, /level=warning event=few-descriptors max_connections=4096 connections=192 /);
});
