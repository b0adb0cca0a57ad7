// The Python module: spans, decorators, counters, threads and forks of the system's python3, by ctypes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { noPython, pythonEnv, recordScript, scriptPath } from './lib/python.mjs';
import { serve } from './lib/server.mjs';

const units = {
  'test_off.py': 'without a service the module does nothing, quickly, whatever it is given',
  'test_traced.py': 'what is traced does what it did, is what it was, and ends when it ends',
};
for (const [script, promise] of Object.entries(units)) {
  test(promise, { skip: noPython }, () => {
    const run = spawnSync('python3', [scriptPath(script)], { env: pythonEnv, encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
  });
}

for (const how of ['close', 'exit']) {
  test(`what a Python program records is in the trace; it ends by ${how}`, { skip: noPython }, async (t) => {
    const server = await serve(t);
    const { end, err, out, download } = await recordScript(t, server, 'recorded.py', 'MEMORY', { args: how === 'close' ? ['close'] : [], env: { TRACEPLANE_RANK: '2' } });
    assert.equal(err, '');
    assert.equal(end.outcome, 'complete', end.reason);
    const events = eventsOf(download).filter((e) => e.ph !== 'M');
    const named = (name) => events.filter((e) => e.name === name);
    const [outer] = named('outer'), [inner] = named('inner'), [call] = named('decorated');
    assert.deepEqual([outer.cat, inner.cat], ['user_annotation', 'pytest.KERNEL']);
    assert.deepEqual(outer.args, { a: 1, b: 2.5, c: true, d: 'text ✓', e: '[1, 2]', rows: 7 });
    assert.ok(outer.ts <= inner.ts && inner.ts <= call.ts && inner.ts + inner.dur <= outer.ts + outer.dur, 'they nest');
    assert.deepEqual([named('renamed').length, named('raises').length, named('mark')[0].args.where], [1, 1, 'here']);
    assert.equal(named('used')[0].cat, 'pytest.MEMORY');
    assert.deepEqual(named('loss').map((e) => e.cat), ['python.COUNTER'], 'its type is known before the trace');
    assert.deepEqual(named('diverged').map((e) => [e.ph, e.cat, e.args.value]), [['i', 'python.COUNTER', 'NaN']]);
    assert.deepEqual(named('awkward')[0].args, { v: '<Unprintable without a text: ValueError>', nothing: 'None' });
    assert.equal(named("['list']").length, 1);
    assert.equal(named('at a float').length, 1);
    assert.equal(named('asynchronous').filter((e) => e.ph === 'b').length, 2);
    assert.equal(named('asynchronous').filter((e) => e.ph === 'e').length, 2);
    assert.deepEqual(named('spanned')[0].args, { rows: 9 });
    for (const name of ['generator', 'asynchronous_generator']) {
      const [begin, end] = named(name);
      assert.deepEqual([begin.ph, end.ph, named(name).length], ['b', 'e', 2], name);
      assert.ok(end.ts - begin.ts >= 30e3, `${name} took ${end.ts - begin.ts} us, with three pauses of 10 ms`);
    }
    const [held] = named('held');
    assert.ok(held.ts + held.dur <= named('let go')[0].ts, 'it ends when it is left, and not when the other is');
    assert.equal(named('threaded').length, 400);
    assert.equal(new Set(named('threaded').map((e) => e.tid)).size, 4);
    assert.equal(named('gemm')[0].dur, 1);
    assert.notEqual(named('gemm')[0].tid, outer.tid);
    assert.equal(named('of the child').length, 0);
    assert.match(out, /^ready 1\ndone \d+\n$/);
  });
}
