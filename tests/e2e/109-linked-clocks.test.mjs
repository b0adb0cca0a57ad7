// Linked programs whose clocks are an hour off and drift by 100 ppm: their marks are where they belong, within the bound that the trace reports.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import test from 'node:test';
import { TraceProcessor } from './lib/perfetto.mjs';
import { BINARY, pick, serve } from './lib/server.mjs';

const SKEWED = path.join(path.dirname(BINARY), 'e2e/skewed');
const PERIOD_NS = 5000000n, RECORD_MS = pick(4000, 6000), MARKS = 300;
const SKEWS = [[3600, 100], [-3600, -100]]; // seconds, ppm; by rank

function startSkewed(t, server, rank, [shift, ppm]) {
  const env = { ...process.env, TRACEPLANE_URL: `http://127.0.0.1:${server.port}`, TRACEPLANE_RANK: String(rank), TRACEPLANE_CLOCK: 'monotonic' };
  const child = spawn(SKEWED, [String(shift), String(ppm)], { stdio: ['ignore', 'ignore', 'inherit'], env });
  const exited = new Promise((r) => child.once('exit', r));
  t.after(async () => { child.kill('SIGKILL'); await exited; });
}

// How far a mark is from the machine's time of it, beyond what the mark itself does not know.
function errorOf({ ns, n, pastNs, halfNs }) {
  const off = ns - (n * PERIOD_NS + pastNs);
  const far = (off < 0n ? -off : off) - halfNs;
  return Number(far < 0n ? 0n : far);
}

function marksOfChrome(text) {
  const base = BigInt(/"baseTimeNanoseconds": ?(\d+)/.exec(text)[1]);
  const big = (x) => BigInt(Math.round(x));
  return JSON.parse(text).traceEvents.filter((e) => e.name === 'mark').map(({ pid, ts, args }) =>
    ({ pid, ns: base + big(ts * 1000), n: big(args.n), pastNs: big(args.past_ns), halfNs: big(args.half_ns) }));
}

async function marksOfPerfetto(bytes) {
  const tp = await TraceProcessor.load(bytes);
  const arg = (key) => `extract_arg(slice.arg_set_id, 'debug.${key}') as ${key}`;
  const rows = await tp.query(`select pid, ts, ${arg('n')}, ${arg('past_ns')}, ${arg('half_ns')} from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid) where slice.name = 'mark'`);
  return rows.map((r) => ({ pid: Number(r.pid), ns: BigInt(r.ts), n: BigInt(r.n), pastNs: BigInt(r.past_ns), halfNs: BigInt(r.half_ns) }));
}

test('marks of clocks an hour and 100 ppm off are aligned within the reported bound, in both formats', async (t) => {
  const server = await serve(t);
  SKEWS.forEach((skew, rank) => startSkewed(t, server, rank, skew));
  for (let i = 0; (await server.get('/producers')).json().items.filter((p) => p.clock).length < SKEWS.length; i++) {
    assert.ok(i < 3000, 'the programs did not register');
    await new Promise((r) => setTimeout(r, 20));
  }
  // For so long, and until there are marks enough: it may be that nobody runs for most of that.
  const trace = await server.createTrace(), began = Date.now();
  const isEnough = async () => (await server.get(`/traces/${trace.id}`)).json().matched.every((m) => m.counts.stored > MARKS);
  for (let i = 0; Date.now() < began + RECORD_MS || !(await isEnough()); i++) {
    assert.ok(i < 6000, 'the marks did not come');
    await new Promise((r) => setTimeout(r, 20));
  }
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  const bytes = await server.download(trace.id);
  const head = JSON.parse(bytes.toString()).traceplane;
  const formats = { chrome: marksOfChrome(bytes.toString()), perfetto: await marksOfPerfetto(await server.download(trace.id, '?format=perfetto')) };
  for (const m of end.matched) {
    const { clock } = head.producers.find((p) => p.rank === m.rank);
    assert.ok(Math.abs(clock.offset_ns / 1e9 + SKEWS[m.rank][0]) < 1, `rank ${m.rank}: offset ${clock.offset_ns}`);
    assert.equal(clock.applied, true);
    for (const [format, marks] of Object.entries(formats)) {
      const own = marks.filter((x) => x.pid === m.pid);
      assert.ok(own.length > MARKS / 2, `${format}, rank ${m.rank}: ${own.length} marks`);
      const worst = Math.max(...own.map(errorOf));
      t.diagnostic(`${format}, rank ${m.rank}: off by ${worst} ns at most; bound ${clock.error_ns} ns, of ${clock.readings.length} readings, ${own.length} marks`);
      assert.ok(worst <= clock.error_ns, `${format}, rank ${m.rank}: off by ${worst} ns, bound ${clock.error_ns} ns`);
    }
  }
  const times = ({ pid, ns, n }) => `${pid} ${n} ${ns}`;
  assert.deepEqual(formats.perfetto.map(times).sort(), formats.chrome.map(times).sort(), 'both formats say the same');

  // Side by side: marks of the same period, of which the machine's own times are known.
  const [a, b] = end.matched.map((m) => new Map(formats.chrome.filter((x) => x.pid === m.pid).map((x) => [x.n, x])));
  const bound = head.producers.reduce((s, p) => s + p.clock.error_ns, 0);
  const pairs = [...a.keys()].filter((n) => b.has(n)).map((n) => [a.get(n), b.get(n)]);
  assert.ok(pairs.length > 50, `${pairs.length} pairs`);
  for (const [x, y] of pairs) {
    const off = (x.ns - y.ns) - (x.pastNs - y.pastNs), far = off < 0n ? -off : off;
    assert.ok(far <= BigInt(bound) + x.halfNs + y.halfNs, `period ${x.n}: ${off} ns apart, bound ${bound} ns`);
  }

  // Clocks are read again while a trace records: a reading that is better than the worn one goes into the stream.
  // On a busy machine all those of one trace may be worse.
  const isReadAgain = (info) => info.producers.every((p) => p.clock.readings.length > 1);
  for (let i = 0, info = head; !isReadAgain(info); i++) {
    assert.ok(i < 10, `no clock was read again: ${JSON.stringify(info.producers.map((p) => p.clock))}`);
    const again = await server.createTrace({ stop: { duration_ms: RECORD_MS } });
    await server.waitFinal(again.id);
    info = JSON.parse((await server.download(again.id)).toString()).traceplane;
  }
});
