// The Perfetto judge on whole traces, synthetic and real, alone and merged.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import test, { after, before } from 'node:test';
import zlib from 'node:zlib';
import { compareSlices, count, expectedFlows, parseExact } from './lib/judge.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { ROOT, SHARED, Server } from './lib/server.mjs';

const REAL = path.join(SHARED, 'traces');
let server;
// The judge takes its time: a connection that waits for it would be closed meanwhile.
before(async () => { server = await Server.start(); server.agent = new http.Agent(); });
after(() => server.stop());

// The same trace for each rank that the corpus makes, from its own generator.
function synthetic(rank) {
  const code = `import synthetic; print(synthetic.dump(synthetic.rank_trace(7, ${rank})))`;
  return execFileSync('python3', ['-B', '-c', code], { cwd: path.join(ROOT, 'tests/corpus'), maxBuffer: 1 << 28 });
}

async function judged(files) {
  const { id } = await server.createTrace({});
  for (const [rank, body] of files.entries()) await server.expect('POST', `/traces/${id}/files?rank=${rank}&name=r${rank}.json`, [201], { body });
  const end = await server.stopTrace(id);
  assert.equal(end.state, 'complete');
  const judge = await TraceProcessor.load(await server.download(id, '?format=perfetto'));
  assert.deepEqual(await judge.errors(), []);
  return { judge, id };
}

const textOf = (file) => (file[0] === 0x1f ? zlib.gunzipSync(file) : file).toString('utf8');

// Slices, arguments and arrows of these files; every rank is told by its processes.
async function check(files) {
  const { judge } = await judged(files);
  const sources = files.map((f) => parseExact(textOf(f)));
  const total = sources.reduce((n, s) => n + s.traceEvents.length, 0);
  assert.equal(await compareSlices(judge, sources, total > 20000 ? 31n : 1n), '');
  assert.equal(await count(judge, 'flow'), sources.reduce((n, s) => n + expectedFlows(s), 0), 'arrows');
  if (files.length < 2) return;
  const processes = await judge.query("select p.upid, p.pid, group_concat(a.string_value, ',') as labels, p.name from process p left join args a on a.arg_set_id = p.arg_set_id where p.upid in (select upid from thread t join thread_track k using (utid)) group by p.upid");
  assert.equal(new Set(processes.map((p) => p.pid)).size, processes.length, 'every process has a pid of its own');
  for (const rank of files.keys()) assert.ok(processes.some((p) => new RegExp(`rank ${rank}\\b`).test(`${p.name} ${p.labels}`)), `no process is of rank ${rank}`);
}

test('a synthetic trace, alone', () => check([synthetic(0)]));
test('synthetic traces of two ranks, merged', () => check([synthetic(0), synthetic(1)]));
test('one trace twice, merged', () => check([synthetic(0), synthetic(0)]));

const real = fs.existsSync(REAL) ? fs.readdirSync(REAL).filter((f) => f.endsWith('.json.gz')) : [];
const read = (name) => fs.readFileSync(path.join(REAL, name));
test('real traces are here', (t) => { if (real.length === 0) t.skip('no ../shared/traces beside the project'); });
for (const name of real) test(`${name}, alone`, () => check([read(name)]));
if (real.length > 0) {
  test('two ranks of a CUDA job, merged', () => check(['cuda-rank0.json.gz', 'cuda-rank1.json.gz'].map(read)));
  test('two processes with plugin events, merged', () => check(['libkineto-2026-08-p0.json.gz', 'libkineto-2026-08-p1.json.gz'].map(read)));
}
