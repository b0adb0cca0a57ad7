// The Perfetto judge on the inputs of the wild: names, times, arguments, arrows, counters, rows.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test, { after, before } from 'node:test';
import { compareSlices, count, parseExact } from './lib/judge.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { ROOT, Server } from './lib/server.mjs';

let server;
before(async () => {
  server = await Server.start();
  await server.registerTypes(['ascend.KERNEL', 'ascend.SYNC', 'ascend.MEMCPY', 'ascend.HW_COUNTER']);
});
after(() => server.stop());

const bytesOf = (name) => fs.readFileSync(path.join(ROOT, 'tests/corpus/cases', `${name}.json`));

// Send a case, stop, and load the Perfetto download into a judge, which must have nothing to complain about.
async function judged(name, how = 'events') {
  const { id } = await server.createTrace({});
  await server.expect('POST', `/traces/${id}/${how}`, [200, 201], { body: bytesOf(name) });
  await server.stopTrace(id);
  const judge = await TraceProcessor.load(await server.download(id, '?format=perfetto'));
  assert.deepEqual(await judge.errors(), [], name);
  return judge;
}
const only = async (judge, sql) => {
  const rows = await judge.query(sql);
  assert.equal(rows.length, 1, sql);
  return rows[0];
};

for (const name of ['quotes-in-name', 'utf8-name', 'control-chars', 'negative-dur', 'epoch-us-with-ns', 'args-all-kinds', 'begin-end', 'overlap-same-lane', 'flows', 'async', 'untyped-cats'])
  for (const how of ['events', 'files'])
    test(`${name} as ${how}: every slice with its name, time, duration and arguments`, async () => {
      const judge = await judged(name, how);
      assert.equal(await compareSlices(judge, [parseExact(bytesOf(name).toString('utf8'))]), '');
    });

test('nanoseconds at epoch scale are exact', async () => {
  const row = await only(await judged('epoch-us-with-ns'), 'select cast(ts as text) as ts, cast(dur as text) as dur from slice');
  assert.deepEqual(row, { ts: '1795982590884123457', dur: '1' });
});

test('bad bytes are replaced, numbers in text are numbers, NaN is text', async () => {
  assert.equal((await only(await judged('invalid-utf8-name'), 'select name from slice')).name, 'bad\ufffd\ufffd name');
  const row = await only(await judged('string-numbers'), 'select s.ts, s.dur, t.name as thread, p.name as process from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid)');
  assert.deepEqual(row, { ts: 12500n, dur: 3000n, thread: 'PyTorch Profiler', process: 'Spans' });
  const args = await (await judged('nan-in-args')).query("select key, string_value as v from args where key like 'debug.%' order by key");
  assert.deepEqual(args, [{ key: 'debug.loss', v: 'NaN' }, { key: 'debug.lr', v: 'Infinity' }]);
});

test('begins and ends nest; what never ends is shown open', async () => {
  const judge = await judged('begin-end');
  const rows = await judge.query('select name, ts, dur, depth from slice order by ts');
  assert.deepEqual(rows.map((r) => [r.name, r.ts, r.dur, r.depth]), [['outer', 1000n, 3000n, 0n], ['inner', 2000n, 1000n, 1n], ['never ends', 5000n, -1n, 0n]]);
});

test('one arrow leads from the launch to the kernel', async () => {
  const row = await only(await judged('flows'), 'select a.name as a, b.name as b from flow join slice a on a.slice_id = flow.slice_out join slice b on b.slice_id = flow.slice_in');
  assert.deepEqual(row, { a: 'launch', b: 'kernel' });
});

test('counter series and instants are there', async () => {
  const judge = await judged('counters-instants');
  const rows = await judge.query('select t.name, c.ts, c.value from counter c join track t on c.track_id = t.id order by t.name');
  assert.deepEqual(rows, [{ name: 'HBM read', ts: 1000n, value: 1 }, { name: 'HBM write', ts: 1000n, value: 2.5 }]);
  assert.deepEqual((await judge.query('select name, ts, dur from slice order by ts')).map((r) => [r.name, r.ts, r.dur]), [['barrier', 2000n, 0n], ['old style', 3000n, 0n]]);
  assert.equal(await count(judge, "slice where name = 'old style' and track_id in (select id from thread_track)"), 1);
});

test('operations that overlap in time are two', async () => {
  const rows = await (await judged('async')).query('select name, ts, dur from slice order by ts');
  assert.deepEqual(rows.map((r) => [r.name, r.ts, r.dur]), [['copy', 1000n, 8000n], ['copy', 2000n, 10000n]]);
});

test('of a damaged file the judge sees what could be read', async () => {
  for (const [name, names] of [['truncated', ['kept']], ['log-line-inside', ['kept', 'after']]])
    assert.deepEqual((await (await judged(name, 'files')).query('select name from slice order by ts')).map((r) => r.name), names);
});
