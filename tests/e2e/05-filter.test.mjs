// What a filter comes to, and what it does to events.
import assert from 'node:assert/strict';
import test from 'node:test';
import { namesOf, slice } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

async function prepared(t) {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL', 'ascend.SYNC', 'other.COPY']);
  return server;
}

// The names of the types that a filter asks for.
async function resolved(server, filter) {
  const dry = (await server.expect('POST', '/traces', [200], { body: { filter, dry_run: true } })).json();
  return dry.types.map((x) => x.name);
}

test('without a filter the defaults and all custom types are asked for', async (t) => {
  const server = await prepared(t);
  const dry = (await server.expect('POST', '/traces', [200], { body: { dry_run: true } })).json();
  const ids = dry.types.map((x) => x.id);
  assert.deepEqual(ids.filter((id) => id < 50), Array.from({ length: 18 }, (_, i) => i));
  assert.deepEqual(dry.types.filter((x) => x.id >= 50).map((x) => x.name).sort(), ['ascend.KERNEL', 'ascend.SYNC', 'other.COPY']);
});

test('a filter asks for exactly what it names, custom ids included', async (t) => {
  const server = await prepared(t);
  assert.deepEqual(await resolved(server, { include: ['ascend.KERNEL', 'cpu_op'] }), ['cpu_op', 'ascend.KERNEL']);
  assert.deepEqual((await resolved(server, { include: ['ascend.*'] })).sort(), ['ascend.KERNEL', 'ascend.SYNC']);
  assert.deepEqual(await resolved(server, { include: ['ascend.*'], exclude: ['*.SYNC'] }), ['ascend.KERNEL']);
  const all = await resolved(server, { exclude: ['other.COPY'] });
  assert.ok(all.includes('ascend.KERNEL') && !all.includes('other.COPY'), String(all));
});

test('an unknown name names itself, its field and what is near', async (t) => {
  const server = await prepared(t);
  const body = { filter: { include: ['ascend.KERNEL', 'ascend.KERNAL'] } };
  const p = await server.problem('POST', '/traces', 400, 'unknown-type', { body });
  assert.equal(p.field, 'filter.include[1]');
  assert.equal(p.name, 'ascend.KERNAL');
  assert.ok(p.nearest.includes('ascend.KERNEL'), JSON.stringify(p));
  await server.registerTypes(['x.KERNEL']);
  const q = await server.problem('POST', '/traces', 409, 'ambiguous-name', { body: { filter: { exclude: ['KERNEL'] } } }).catch((e) => e);
  assert.ok(q.field === 'filter.exclude[0]' && q.candidates.length === 2, String(q.message ?? JSON.stringify(q)));
});

test('types, names and durations decide what is stored; the filter is echoed', async (t) => {
  const server = await prepared(t);
  const filter = { include: ['ascend.*'], exclude: ['ascend.SYNC'], names: { include: ['mat*'], exclude: ['*_debug'] }, min_duration_ns: 2000 };
  const trace = await server.createTrace({ filter });
  assert.deepEqual(trace.filter, filter);
  const reply = await server.events(trace.id, [slice('matmul', 0, 3), slice('matmul', 5, 1), slice('matmul_debug', 10, 3), slice('copy', 20, 3),
    slice('matmul', 30, 3, { cat: 'ascend.SYNC' }), slice('matmul', 40, 3, { cat: 'cpu_op' }), slice('matrix', 50, 2)]);
  assert.deepEqual([reply.posted, reply.accepted, reply.filtered, reply.rejected], [7, 2, 5, 0]);
  const view = await server.stopTrace(trace.id);
  assert.deepEqual(view.filter, filter);
  assert.deepEqual([view.counts.emitted, view.counts.stored, view.counts.filtered], [7, 2, 5]);
  assert.deepEqual(namesOf(await server.downloadChrome(trace.id)), ['matmul', 'matrix']);
});

test('metadata and flows are no types and pass', async (t) => {
  const server = await prepared(t);
  const trace = await server.createTrace({ filter: { include: ['ascend.KERNEL'] } });
  await server.events(trace.id, [slice('k', 1, 5), { ph: 'M', name: 'process_name', pid: 1, args: { name: 'python' } },
    { ph: 's', id: 1, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 2 }, { ph: 'f', bp: 'e', id: 1, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 3 }]);
  await server.stopTrace(trace.id);
  const out = await server.downloadChrome(trace.id);
  assert.deepEqual(out.traceEvents.filter((e) => 'sf'.includes(e.ph)).length, 2);
  assert.ok(out.traceEvents.some((e) => e.ph === 'M' && e.args.name === 'python'));
});
