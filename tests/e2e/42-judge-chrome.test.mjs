// A viewer on Chrome downloads: slices, arguments, arrows and names of real traces, alone and merged.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import test, { after, before } from 'node:test';
import zlib from 'node:zlib';
import { compareChromeSlices, count, eventsOnly, expectedFlows, parseExact } from './lib/judge.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { ROOT, SHARED, Server } from './lib/server.mjs';

const REAL = path.join(SHARED, 'traces');
let server;
// The judge takes its time: a connection that waits for it would be closed meanwhile.
before(async () => { server = await Server.start(); server.agent = new http.Agent(); });
after(() => server.stop());

// HTA's own way to the rank: the first line that looks like one.
function rankForHta(text) {
  const line = text.split('\n').find((l) => /"rank":\s+\d+/.test(l));
  return line === undefined ? 0 : Number(/"rank":\s+(\d+)/.exec(line)[1]);
}

async function check(files) {
  const { id } = await server.createTrace({});
  for (const [rank, body] of files.entries()) await server.expect('POST', `/traces/${id}/files?rank=${rank + 5}`, [201], { body });
  await server.stopTrace(id);
  const out = await server.download(id), text = out.toString('utf8');
  const sources = files.map((f) => parseExact((f[0] === 0x1f ? zlib.gunzipSync(f) : f).toString('utf8')));
  const judge = await TraceProcessor.load(eventsOnly(out));
  assert.deepEqual(await judge.errors(), []);
  assert.equal(await compareChromeSlices(judge, sources, BigInt(/"baseTimeNanoseconds": (\d+)/.exec(text)[1])), '');
  assert.equal(await count(judge, 'flow'), sources.reduce((n, s) => n + expectedFlows(s), 0), 'arrows');
  assert.equal(rankForHta(text), 5);
  const named = new Set(sources.flatMap((s) => s.traceEvents).filter((e) => e.name === 'process_name').map((e) => e.args.name));
  const names = new Set((await judge.query('select name from process where name is not null')).map((p) => p.name));
  assert.deepEqual([...named].filter((n) => n && !names.has(n)), [], 'names of processes');
}

const real = fs.existsSync(REAL) ? fs.readdirSync(REAL).filter((f) => f.endsWith('.json.gz') && !f.includes('109k')) : [];
const read = (name) => fs.readFileSync(path.join(REAL, name));
test('real traces are here', (t) => { if (real.length === 0) t.skip('no ../shared/traces beside the project'); });
for (const name of real) test(`${name}, alone`, () => check([read(name)]));
if (real.length > 0) {
  test('two ranks of a CUDA job, merged', () => check(['cuda-rank0.json.gz', 'cuda-rank1.json.gz'].map(read)));
  test('two processes with plugin events, merged', () => check(['libkineto-2026-08-p0.json.gz', 'libkineto-2026-08-p1.json.gz'].map(read)));
}
for (const name of ['args-all-kinds', 'control-chars', 'flows', 'overlap-same-lane', 'quotes-in-name', 'utf8-name'])
  test(`${name}, alone and merged with itself`, async () => {
    const body = fs.readFileSync(path.join(ROOT, 'tests/corpus/cases', `${name}.json`));
    await check([body]);
    await check([body, body]);
  });
