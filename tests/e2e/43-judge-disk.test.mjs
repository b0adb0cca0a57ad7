// What lies on disk, as the judge sees it when there is no service: a raw log opens by itself, a sealed stream brings
// no description of its tracks, and both are whole in a download of a service that is started on a copy.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { slice } from './lib/events.mjs';
import { count } from './lib/judge.mjs';
import { startLinked } from './lib/linked.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { serve, temporaryFolder } from './lib/server.mjs';

const named = (name, id, value) => ({ ph: 'M', name, pid: 1, tid: id, args: { name: value } });
const batch = (n) => [
  named('process_name', 0, 'trainer'), named('thread_name', 1, 'main'), slice(`outer-${n}`, 10 * n, 8), slice(`inner-${n}`, 10 * n + 1, 2, { args: { n } }),
  { ph: 'C', cat: 'hw', name: 'HBM', pid: 1, tid: 1, ts: 10 * n, args: { read: n } }, { ph: 's', id: n, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 10 * n },
  { ph: 'f', bp: 'e', id: n, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 10 * n + 1 },
];

// The one file of a data folder with that ending.
function find(dataDir, ending) {
  const files = fs.readdirSync(dataDir, { recursive: true }).filter((f) => f.endsWith(ending));
  assert.equal(files.length, 1, String(files));
  return path.join(dataDir, files[0]);
}

async function see(trace) {
  const judge = await TraceProcessor.load(trace);
  assert.deepEqual(await judge.errors(), []);
  const rows = await judge.query('select s.name, t.name as thread, p.name as process from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid) order by s.ts');
  return { rows, flows: await count(judge, 'flow'), counters: await count(judge, 'counter') };
}

test('a log of a service that is gone opens by itself; a sealed stream does in a download', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  for (const n of [0, 1, 2]) await server.events(id, batch(n));
  await server.kill();
  const names = [0, 1, 2].flatMap((n) => [`outer-${n}`, `inner-${n}`]);
  const log = await see(fs.readFileSync(find(server.dataDir, '.log')));
  assert.deepEqual([log.rows.map((r) => r.name), log.flows, log.counters], [names, 3, 3]);

  const again = await serve(t, { dataDir: server.dataDir });
  await again.stopTrace(id);
  await again.terminate();
  assert.deepEqual(await see(fs.readFileSync(find(server.dataDir, '.pftrace'))), { rows: [], flows: 0, counters: 0 });

  const copy = temporaryFolder();
  t.after(() => fs.rmSync(copy, { recursive: true, force: true }));
  fs.cpSync(server.dataDir, copy, { recursive: true });
  const elsewhere = await serve(t, { dataDir: copy });
  const sealed = await see(await elsewhere.download(id, '?format=perfetto'));
  assert.deepEqual([sealed.rows, sealed.flows, sealed.counters], [names.map((name) => ({ name, thread: 'main', process: 'trainer' })), 3, 3]);
});

test('the log of a linked program has the ends of its slices, which the program does not send', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0 });
  const { id } = await server.createTrace();
  await p.recording();
  await p.tell('slices 50');
  await p.tell('flush 10000');
  await server.kill();
  const judge = await TraceProcessor.load(fs.readFileSync(find(server.dataDir, '.log')));
  assert.deepEqual(await judge.errors(), []);
  const [{ n, ended }] = await judge.query('select count(*) as n, sum(dur >= 0 and name is not null) as ended from slice');
  assert.ok(n >= 50, `${n} slices of trace ${id}`);
  assert.equal(Number(ended), Number(n));
});
