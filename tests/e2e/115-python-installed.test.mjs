// The Python module finds the library that it was installed with, wherever that is, without a variable.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { noPython, recordScript } from './lib/python.mjs';
import { ROOT, serve } from './lib/server.mjs';

const isPlain = basename(dirname(process.env.TRACEPLANED ?? '')) === 'build';
const skip = noPython || (!isPlain && 'not the plain build');
const LIBRARY = 'import traceplane; print(traceplane.version(), traceplane._library().path)';

function install(t, ...where) {
  const dir = mkdtempSync(join(tmpdir(), 'python-'));
  t.after(() => rmSync(dir, { recursive: true }));
  execFileSync('make', ['-C', ROOT, 'install', ...where.map((w) => w.replace('@', dir))], { stdio: 'pipe' });
  return dir;
}

// The module in a folder, and nothing else that could say where the library is.
const bare = (folder) => ({ PATH: process.env.PATH, HOME: '/', PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' });

function found(folder) {
  const run = spawnSync('python3', ['-W', 'error', '-c', LIBRARY], { cwd: '/', env: bare(folder), encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  const [version, path] = run.stdout.trim().split(' ');
  assert.match(version, /^\d+\.\d+\.\d+$/);
  return execFileSync('realpath', [path], { encoding: 'utf8' }).trim();
}

test('the module records with the library of its own prefix', { skip }, async (t) => {
  const dir = install(t, 'PREFIX=@/opt/x');
  const module = join(dir, 'opt/x/share/traceplane/python');
  const library = join(dir, 'opt/x/lib/libtraceplane.so.0');
  assert.equal(found(module), library);
  const server = await serve(t);
  const { end, err, download } = await recordScript(t, server, 'recorded.py', 'MEMORY', { env: { PYTHONPATH: module, TRACEPLANE_LIBRARY: undefined, LD_LIBRARY_PATH: undefined } });
  assert.equal(err, '');
  assert.equal(end.outcome, 'complete', end.reason);
  assert.equal(eventsOf(download).filter((e) => e.name === 'threaded').length, 400);

  // A link to the module, the module among a Python's own packages, and the library beside it.
  const elsewhere = join(dir, 'elsewhere');
  mkdirSync(elsewhere);
  symlinkSync(join(module, 'traceplane.py'), join(elsewhere, 'traceplane.py'));
  assert.equal(found(elsewhere), library, 'by a link');
  const packages = join(dir, 'opt/x/lib/python3/site-packages');
  mkdirSync(packages, { recursive: true });
  cpSync(join(module, 'traceplane.py'), join(packages, 'traceplane.py'));
  assert.equal(found(packages), library, 'among the packages of the prefix');
  cpSync(library, join(packages, 'libtraceplane.so'));
  assert.equal(found(packages), join(packages, 'libtraceplane.so'), 'beside it');
});

test('a staged installation works where it is moved to', { skip }, (t) => {
  const dir = install(t, 'DESTDIR=@', 'PREFIX=/usr');
  assert.equal(found(join(dir, 'usr/share/traceplane/python')), join(dir, 'usr/lib/libtraceplane.so.0'));
});
