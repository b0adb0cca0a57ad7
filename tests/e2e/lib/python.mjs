// Programs of the system's python3 that use the module (tests/e2e/python): with a service, to their end.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { ENDS_LATE } from './linked.mjs';
import { BINARY, IS_SANITIZED, ROOT } from './server.mjs';

const LIBRARY = path.join(path.dirname(BINARY), 'libtraceplane.so');
const SCRIPTS = path.join(ROOT, 'tests/e2e/python');

// The runtimes of the sanitizers that the library is built with, which have to be loaded before the interpreter; none in
// the plain build. Leaks are not looked for: an interpreter leaves memory to the end of its process, as the shells do
// that it runs.
const runtimes = IS_SANITIZED
  ? [...(spawnSync('ldd', [LIBRARY], { encoding: 'utf8' }).stdout ?? '').matchAll(/=> (\S*lib(?:a|ub)san\.so\S*)/g)].map((m) => m[1])
  : [];
const sanitizedEnv = runtimes.length === 0 ? {} : {
  LD_PRELOAD: runtimes.join(' '),
  ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:detect_leaks=0`,
  PYTHONMALLOC: 'malloc', // so that the memory which Python hands to the library is watched, too
};

export const pythonEnv = {
  ...process.env, PYTHONPATH: path.join(ROOT, 'lib/producer/python'), PYTHONDONTWRITEBYTECODE: '1', TRACEPLANE_LIBRARY: LIBRARY, ...sanitizedEnv,
};
// Why there is nothing to be run here; false if there is.
export const noPython = spawnSync('python3', ['--version']).status !== 0 ? 'there is no python3'
  : !fs.existsSync(LIBRARY) ? `${LIBRARY} is not there`
    : /thread/.test(BINARY) ? 'python3 does not start with the runtime of ThreadSanitizer'
      : IS_SANITIZED && runtimes.length === 0 ? 'the compiler has the runtime of the sanitizer in no library of its own' : false;

export const scriptPath = (name) => path.join(SCRIPTS, name);

// Run a script that waits until it is recorded, under -W error, in a trace of its own, to its good end. `last` is the
// last of the pytest types that it registers: what came when the trace was there would not be recorded in it.
export async function recordScript(t, server, name, last, { args = [], env = {}, flags = ['-W', 'error', '-W', 'ignore::DeprecationWarning'] } = {}) {
  const python = spawn('python3', [...flags, scriptPath(name), ...args],
    { env: { ...pythonEnv, ...ENDS_LATE, TRACEPLANE_URL: `http://127.0.0.1:${server.port}`, ...env } });
  t.after(() => python.kill('SIGKILL'));
  let err = '', out = '';
  python.stderr.on('data', (c) => { err += c; });
  python.stdout.on('data', (c) => { out += c; });
  const exited = new Promise((r) => python.once('close', (code, signal) => r(code ?? signal)));
  const isKnown = async () => (await server.get('/producers')).json().items.length > 0
    && (await server.get('/types')).json().items.some((type) => type.plugin === 'pytest' && type.type_name === last);
  while (!(await isKnown())) {
    if (python.exitCode !== null) assert.fail(`it ended (${python.exitCode}) before it was a producer: ${err}`);
    await new Promise((r) => setTimeout(r, 20));
  }
  const trace = await server.createTrace();
  assert.equal(await exited, 0, err);
  const end = await server.stopTrace(trace.id);
  return { end, out, err, download: await server.downloadChrome(trace.id) };
}
