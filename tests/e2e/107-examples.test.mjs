// The programs of examples/: each can be recorded, and what it is there to show can be seen.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { BINARY, pick, serve } from './lib/server.mjs';

const EXAMPLES = path.join(path.dirname(BINARY), 'examples');
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// Run one, record it for some time once n producers are there and have begun; resolves with the trace and its events.
async function record(t, server, name, args, { n = 1, job = 'default', ms = pick(600, 1500) } = {}) {
  const example = spawn(path.join(EXAMPLES, name), args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true, env: { ...process.env, TRACEPLANE_URL: `http://127.0.0.1:${server.port}` } });
  let err = '';
  example.stderr.on('data', (c) => { err += c; });
  const exited = new Promise((r) => example.once('exit', r));
  t.after(() => { try { process.kill(-example.pid, 'SIGKILL'); } catch {} });
  for (let i = 0; (await server.get(`/producers?job=${job}`)).json().items.length < n; i++) {
    assert.ok(i < 500, `${name} did not register: ${err}`);
    await sleep(20);
  }
  const trace = await server.createTrace({ job });
  const have = async () => (await server.get(`/traces/${trace.id}`)).json().matched;
  for (let i = 0; !(await have()).every((m) => m.state === 'recording'); i++) {
    assert.ok(i < 5000, `${name} did not begin: ${err}`);
    await sleep(20);
  }
  await sleep(ms);
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.equal(err, '');
  return { end, exited, events: eventsOf(await server.downloadChrome(trace.id)) };
}

test('the C program shows its parts inside of its steps, and its counter', async (t) => {
  const { events } = await record(t, await serve(t), 'basic', ['20']);
  const steps = events.filter((e) => e.name === 'step'), parts = events.filter((e) => e.name === 'part');
  assert.ok(steps.length > 3);
  assert.ok(parts.length >= 4 * (steps.length - 1));
  assert.ok(steps.slice(1, -1).every((s) => s.args.total > 0 && s.args.shape === 'wide'));
  assert.ok(events.some((e) => e.ph === 'C' && e.cat === 'basic.MEMORY'));
});

test('the C++ program shows spans of three threads and the arrows between them', { skip: !fs.existsSync(path.join(EXAMPLES, 'cpp')) && 'there is no C++ compiler' }, async (t) => {
  const { events } = await record(t, await serve(t), 'cpp', ['20']);
  const spans = events.filter((e) => e.ph === 'X');
  assert.equal(new Set(spans.map((e) => e.tid)).size, 3);
  assert.deepEqual([...new Set(spans.filter((e) => e.name === 'use').map((e) => e.args.who))].sort(), ['first', 'second']);
  const starts = new Set(events.filter((e) => e.ph === 's').map((e) => e.id));
  assert.ok(events.filter((e) => e.ph === 'f').filter((e) => starts.has(e.id)).length > 5);
});

test('four ranks leave their barriers together, and the slow one does not wait', async (t) => {
  const server = await serve(t);
  const { end, events } = await record(t, server, 'ranks', ['--ranks', '4', '--seconds', '20', '--slow', '2'], { n: 4, job: 'ranks' });
  assert.equal(end.matched.length, 4);
  const rankOf = new Map(end.matched.map((m) => [m.pid, m.rank]));
  const rankByLabel = new Map(events.filter((e) => e.name === 'process_labels').map((e) => [e.pid, Number(/rank (\d+)/.exec(e.args.labels)?.[1])]));
  const rank = (e) => rankByLabel.get(e.pid) ?? rankOf.get(e.pid);
  const byStep = new Map();
  for (const e of events.filter((x) => x.name === 'barrier' && x.dur !== undefined)) byStep.set(e.args.step, [...(byStep.get(e.args.step) ?? []), e]);
  const whole = [...byStep.values()].filter((x) => x.length === 4);
  assert.ok(whole.length > 20, `${whole.length} whole steps`);
  const spreads = whole.map((x) => Math.max(...x.map((e) => e.ts + e.dur)) - Math.min(...x.map((e) => e.ts + e.dur))).sort((a, b) => a - b);
  t.diagnostic(`barriers end within ${spreads[spreads.length >> 1].toFixed(0)} us (median), ${spreads.at(-1).toFixed(0)} us (worst)`);
  // Two clocks may part by what they are known to; the rest is how far apart the processes get their turn.
  const clocksUs = (2 * Math.max(...end.matched.map((m) => m.clock.error_ns))) / 1000;
  assert.ok(spreads[spreads.length >> 1] < clocksUs + pick(1500, 10000), `median ${spreads[spreads.length >> 1]} us, of which clocks ${clocksUs}`);
  const waits = [0, 1, 2, 3].map((r) => whole.flat().filter((e) => rank(e) === r).reduce((sum, e) => sum + e.dur, 0));
  assert.equal(waits.indexOf(Math.min(...waits)), 2, `waits: ${waits}`);
  const kernels = events.filter((e) => e.cat === 'ranks.KERNEL' && e.ph === 'X'), compute = events.filter((e) => e.name === 'compute');
  assert.ok(kernels.length > 20);
  assert.ok(kernels.every((k) => !compute.some((c) => c.pid === k.pid && c.tid === k.tid)), 'kernels have a track of their own');
});
