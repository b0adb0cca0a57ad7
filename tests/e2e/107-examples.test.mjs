// The programs of examples/: each can be recorded, and what it is there to show can be seen.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { BINARY, serve } from './lib/server.mjs';

const EXAMPLES = path.join(path.dirname(BINARY), 'examples');
const FOR_EVER = '100000'; // seconds; each is ended with its test
const LOOKS = 5000; // 20 ms apart: a stop of this program does not use them up

// Run one and record it, once n producers are there, until each has sent that many events; resolves with the trace and
// its events.
async function record(t, server, name, args, { n = 1, job = 'default', events }) {
  const example = spawn(path.join(EXAMPLES, name), args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true, env: { ...process.env, TRACEPLANE_URL: `http://127.0.0.1:${server.port}` } });
  let err = '';
  example.stderr.on('data', (c) => { err += c; });
  t.after(() => { try { process.kill(-example.pid, 'SIGKILL'); } catch {} });
  const until = async (what, isSo) => {
    for (let i = 0; !(await isSo()); i++) {
      assert.ok(i < LOOKS && example.exitCode === null, `${name} did not ${what}: ${err}`);
      await new Promise((r) => setTimeout(r, 20));
    }
  };
  await until('register', async () => (await server.get(`/producers?job=${job}`)).json().items.length >= n);
  const trace = await server.createTrace({ job });
  const members = async () => (await server.get(`/traces/${trace.id}`)).json().matched;
  await until('begin', async () => (await members()).every((m) => m.state === 'recording'));
  await until('record', async () => (await members()).every((m) => m.counts.stored >= events));
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.equal(err, '');
  return { end, events: eventsOf(await server.downloadChrome(trace.id)) };
}

test('the C program shows its parts inside of its steps, and its counter', async (t) => {
  const server = await serve(t);
  const { end, events } = await record(t, server, 'basic', [FOR_EVER], { events: 200 });
  const steps = events.filter((e) => e.name === 'step'), parts = events.filter((e) => e.name === 'part');
  assert.ok(steps.length > 3);
  assert.ok(parts.length >= 4 * (steps.length - 1));
  assert.ok(steps.slice(1, -1).every((s) => s.args.total > 0 && s.args.shape === 'wide'));
  assert.ok(events.some((e) => e.ph === 'C' && e.cat === 'basic.MEMORY'));
  const judge = await TraceProcessor.load(await server.download(end.id, '?format=perfetto'));
  const [{ unit }] = await judge.query("select unit from counter_track where name = 'in use'");
  assert.equal(unit, 'bytes');
});

test('the C++ program shows spans of three threads and the arrows between them', { skip: !fs.existsSync(path.join(EXAMPLES, 'cpp')) && 'there is no C++ compiler' }, async (t) => {
  const { events } = await record(t, await serve(t), 'cpp', [FOR_EVER], { events: 200 });
  const spans = events.filter((e) => e.ph === 'X');
  assert.equal(new Set(spans.map((e) => e.tid)).size, 3);
  assert.deepEqual([...new Set(spans.filter((e) => e.name === 'use').map((e) => e.args.who))].sort(), ['first', 'second']);
  const starts = new Set(events.filter((e) => e.ph === 's').map((e) => e.id));
  assert.ok(events.filter((e) => e.ph === 'f').filter((e) => starts.has(e.id)).length > 5);
});

test('four ranks leave their barriers together, and the slow one does not wait', async (t) => {
  const server = await serve(t);
  const { end, events } = await record(t, server, 'ranks', ['--ranks', '4', '--seconds', FOR_EVER, '--slow', '2'], { n: 4, job: 'ranks', events: 400 });
  assert.equal(end.matched.length, 4);
  const rankOf = new Map(end.matched.map((m) => [m.pid, m.rank]));
  const rankByLabel = new Map(events.filter((e) => e.name === 'process_labels').map((e) => [e.pid, Number(/rank (\d+)/.exec(e.args.labels)?.[1])]));
  const rank = (e) => rankByLabel.get(e.pid) ?? rankOf.get(e.pid);
  const byStep = new Map();
  for (const e of events.filter((x) => x.name === 'barrier' && x.dur !== undefined)) byStep.set(e.args.step, [...(byStep.get(e.args.step) ?? []), e]);
  const whole = [...byStep.values()].filter((x) => x.length === 4);
  assert.ok(whole.length > 20, `${whole.length} whole steps`);
  // Nobody leaves before the last one has come, up to what two clocks are known to; and unless the machine has others to
  // run just then, they leave together.
  const clocksUs = (2 * Math.max(...end.matched.map((m) => m.clock.error_ns))) / 1000;
  for (const x of whole) {
    const early = Math.max(...x.map((e) => e.ts)) - Math.min(...x.map((e) => e.ts + e.dur));
    assert.ok(early <= clocksUs, `step ${x[0].args.step}: left ${early} us before the last came, of which clocks ${clocksUs}`);
  }
  const spreads = whole.map((x) => Math.max(...x.map((e) => e.ts + e.dur)) - Math.min(...x.map((e) => e.ts + e.dur))).sort((a, b) => a - b);
  t.diagnostic(`barriers end within ${spreads[0].toFixed(0)} us (best), ${spreads[spreads.length >> 1].toFixed(0)} us (median), ${spreads.at(-1).toFixed(0)} us (worst); clocks ${clocksUs.toFixed(0)} us`);
  assert.ok(spreads[0] < clocksUs + 1500, `best ${spreads[0]} us, of which clocks ${clocksUs}`);
  // The median: a rank that gets no turn for seconds makes the others wait, the slow one, too.
  const waits = [0, 1, 2, 3].map((r) => whole.flat().filter((e) => rank(e) === r).map((e) => e.dur).sort((a, b) => a - b)[whole.length >> 1]);
  assert.equal(waits.indexOf(Math.min(...waits)), 2, `waits: ${waits}`);
  const kernels = events.filter((e) => e.cat === 'ranks.KERNEL' && e.ph === 'X'), compute = events.filter((e) => e.name === 'compute');
  assert.ok(kernels.length > 20);
  assert.ok(kernels.every((k) => !compute.some((c) => c.pid === k.pid && c.tid === k.tid)), 'kernels have a track of their own');
});
