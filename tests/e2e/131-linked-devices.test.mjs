// A device has a process of its own in both formats, also where the program has the number of the device for its pid.
import assert from 'node:assert/strict';
import test from 'node:test';
import { startLinked } from './lib/linked.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { serve } from './lib/server.mjs';

const SLICES = 3;

// A trace of programs that each have a device with their own pid, which has a stream with the number of their thread.
async function record(t, server, n) {
  const all = [];
  for (let rank = 0; rank < n; rank++) all.push(await startLinked(t, server, { rank }));
  const trace = await server.createTrace();
  for (const p of all) await p.tell('wait 100000');
  for (const p of all) await p.tell(`device ${SLICES}`);
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  return { id: trace.id, all };
}

for (const n of [1, 2]) {
  test(`${n} rank(s) whose pid is the number of a device`, async (t) => {
    const server = await serve(t);
    const { id, all } = await record(t, server, n);

    const { traceEvents: events } = await server.downloadChrome(id);
    const names = events.filter((e) => e.name === 'process_name');
    assert.equal(new Set(names.map((e) => e.pid)).size, 2 * n, 'processes');
    const pidsOf = (name) => new Set(events.filter((e) => e.name === name && e.ph === 'X').map((e) => e.pid));
    assert.deepEqual(pidsOf('host'), new Set(all.map((p) => p.pid)));
    assert.equal(new Set([...pidsOf('host'), ...pidsOf('kernel')]).size, 2 * n, 'no pid is both');
    for (const e of names) assert.equal(/device/.test(e.args.name), pidsOf('kernel').has(e.pid), `${e.pid} is ${e.args.name}`);

    const judge = await TraceProcessor.load(await server.download(id, '?format=perfetto'));
    assert.deepEqual(await judge.errors(), []);
    const found = await judge.query(`select s.name as slice, p.upid, p.name as process, count(1) as n from slice s
      join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid) group by 1, 2`);
    assert.equal(found.length, 2 * n);
    assert.equal(new Set(found.map((r) => r.upid)).size, 2 * n);
    for (const r of found) assert.deepEqual([r.slice, Number(r.n)], [/device/.test(r.process) ? 'kernel' : 'host', SLICES], r.process);
  });
}
