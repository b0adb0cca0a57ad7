// The Python module: spans, decorators, counters, threads and forks of the system's python3, by ctypes.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { BINARY, IS_SANITIZED, ROOT, serve } from './lib/server.mjs';

const LIBRARY = path.join(path.dirname(BINARY), 'libtraceplane.so');
const SCRIPTS = path.join(ROOT, 'tests/e2e/python');
const env = { ...process.env, PYTHONPATH: path.join(ROOT, 'lib/producer/python'), PYTHONDONTWRITEBYTECODE: '1', TRACEPLANE_LIBRARY: LIBRARY };
const why = spawnSync('python3', ['--version']).status !== 0 ? 'there is no python3'
  : IS_SANITIZED ? 'python3 is not built with the sanitizer that the library needs'
    : fs.existsSync(LIBRARY) ? false : `${LIBRARY} is not there`;

test('without a service the module does nothing, quickly', { skip: why }, () => {
  const run = spawnSync('python3', [path.join(SCRIPTS, 'test_off.py')], { env, encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
});

for (const how of ['close', 'exit']) {
  test(`what a Python program records is in the trace; it ends by ${how}`, { skip: why }, async (t) => {
    const server = await serve(t);
    const python = spawn('python3', ['-W', 'error', path.join(SCRIPTS, 'recorded.py'), ...(how === 'close' ? ['close'] : [])],
      { env: { ...env, TRACEPLANE_URL: `http://127.0.0.1:${server.port}`, TRACEPLANE_RANK: '2' } });
    t.after(() => python.kill('SIGKILL'));
    let err = '', out = '';
    python.stderr.on('data', (c) => { err += c; });
    python.stdout.on('data', (c) => { out += c; });
    const exited = new Promise((r) => python.once('exit', (code) => r(code)));
    while ((await server.get('/producers')).json().items.length === 0) await new Promise((r) => setTimeout(r, 20));
    const trace = await server.createTrace();
    assert.equal(await exited, 0, err);
    assert.equal(err, '');
    const end = await server.stopTrace(trace.id);
    assert.equal(end.outcome, 'complete', end.reason);
    const events = eventsOf(await server.downloadChrome(trace.id)).filter((e) => e.ph !== 'M');
    const named = (name) => events.filter((e) => e.name === name);
    const [outer] = named('outer'), [inner] = named('inner'), [call] = named('decorated');
    assert.deepEqual([outer.cat, inner.cat], ['user_annotation', 'pytest.KERNEL']);
    assert.deepEqual(outer.args, { a: 1, b: 2.5, c: true, d: 'text ✓', e: '[1, 2]', rows: 7 });
    assert.ok(outer.ts <= inner.ts && inner.ts <= call.ts && inner.ts + inner.dur <= outer.ts + outer.dur, 'they nest');
    assert.deepEqual([named('renamed').length, named('raises').length, named('mark')[0].args.where], [1, 1, 'here']);
    assert.equal(named('used')[0].cat, 'pytest.MEMORY');
    assert.equal(named('asynchronous').filter((e) => e.ph === 'b').length, 2);
    assert.equal(named('asynchronous').filter((e) => e.ph === 'e').length, 2);
    assert.equal(named('threaded').length, 400);
    assert.equal(new Set(named('threaded').map((e) => e.tid)).size, 4);
    assert.equal(named('gemm')[0].dur, 1);
    assert.notEqual(named('gemm')[0].tid, outer.tid);
    assert.equal(named('of the child').length, 0);
    assert.match(out, /^ready 1\ndone \d+\n$/);
  });
}
