// Stand-ins for PyTorch processes, and a service that they find. Names of sockets are of this process: others on the
// machine share the namespace.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { BINARY, serve, temporaryFolder } from './server.mjs';

const CLIENT = path.join(path.dirname(BINARY), 'e2e', 'kineto_client');
let n = 0;

// A service with a Kineto socket of its own: server.kineto has its name and the folder for files.
export async function serveKineto(t, { args = [], dataDir = null, kineto = null, through = [] } = {}) {
  const k = kineto ?? { name: `tp-e2e-${process.pid}-${++n}`, traceDir: path.join(temporaryFolder(), 'files') };
  const server = await serve(t, { args: ['--kineto-socket', k.name, '--kineto-trace-dir', k.traceDir, ...args], dataDir, through });
  server.kineto = k;
  return server;
}

// Clients with these knobs ({count: 3, old: 1}); `events` fills up with what they say. `through` is a command that runs them.
export function clients(t, server, knobs = {}, through = []) {
  const args = Object.entries({ name: server.kineto.name, 'run-ms': 600000, ...knobs }).flatMap(([k, v]) => [`--${k}`, String(v)]);
  const [program, ...words] = [...through, CLIENT, ...args];
  const c = { events: [], process: spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] }) };
  let rest = '';
  c.process.stdout.on('data', (data) => {
    const lines = (rest + data).split('\n');
    rest = lines.pop();
    c.events.push(...lines.map((l) => JSON.parse(l)));
  });
  c.of = (event) => c.events.filter((e) => e.event === event);
  c.ended = new Promise((resolve) => c.process.once('exit', resolve));
  c.stop = () => { c.process.kill('SIGKILL'); return c.ended; };
  t.after(() => c.stop());
  return c;
}

// Wait until so many Kineto producers are listed and are `state`.
export async function producers(server, count, state = 'idle') {
  for (let i = 0; i < 3000; i++) {
    const items = (await server.get('/producers?limit=1000')).json().items.filter((p) => p.kind === 'kineto');
    if (items.length >= count && items.every((p) => p.state === state)) return items;
    await new Promise((r) => setTimeout(r, 20));
  }
  throw new Error(`there are no ${count} Kineto processes that are ${state}`);
}

// What clients dropped for another reason than that they were late.
export const dropped = (c) => c.of('dropped').filter((e) => !/insufficient time/.test(e.why));

// Whether a process missed its start, as one does that gets no turn for seconds: what its rules make of that says nothing of
// the service.
export const missed = (c) => c.of('dropped').some((e) => /insufficient time|timestamp in past/.test(e.why));

// Whether a process that asks each `interval` got no turn for a while, or no answer within its window: then it may not have
// been told what it would have been.
export const wasKept = (c, interval) => c.of('poll').some((e, i, all) => e.us >= 50000 || (i > 0 && e.ms - all[i - 1].ms > interval + 1500));

// Wait until something is so. It is looked at so often that it would take `ms` if that took no time: on a slow machine, and
// after a stop of this program, the wait is as much longer.
export async function until(what, check, ms = 60000) {
  for (let i = 0; i < ms / 20; i++) {
    const value = await check();
    if (value) return value;
    await new Promise((r) => setTimeout(r, 20));
  }
  throw new Error(`it did not happen in ${ms / 20} looks: ${what}`);
}

// No client was ended by a signal: nothing that the service sends may do that.
export function assertNobodyDied(c) {
  assert.deepEqual(c.of('end').filter((e) => e.signal !== undefined && e.signal !== 9), []);
  assert.deepEqual(c.of('dropped').filter((e) => /spins/.test(e.why)), []);
}

// A command that runs a program as another user, also one that this user could not get at by its path.
export const asUser = (uid) => ['python3', '-c', `
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.setgroups([]); os.setresgid(${uid}, ${uid}, ${uid}); os.setresuid(${uid}, ${uid}, ${uid})
os.execve(fd, sys.argv[1:], os.environ)
`];

// Two folders, data and files, of a service that runs as a user, in one that all can go through.
export function foldersOf(t, uid) {
  const dir = fs.mkdtempSync('/tmp/tpk-');
  t.after(() => fs.rmSync(dir, { recursive: true }));
  fs.chmodSync(dir, 0o711);
  for (const name of ['data', 'files']) { fs.mkdirSync(`${dir}/${name}`, { mode: 0o711 }); fs.chownSync(`${dir}/${name}`, uid, uid); }
  return dir;
}

// Run Python, which has datagram sockets of this kind; the code finds its arguments in sys.argv[1:].
export function python(code, args = []) {
  return new Promise((resolve, reject) => {
    execFile('python3', ['-c', code, ...args.map(String)], { timeout: 60000 }, (e, stdout, stderr) => (e ? reject(new Error(stderr)) : resolve(stdout)));
  });
}
