// Limits of events and streams: what is over is counted by cause, or stored in another way; never lost in silence.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf, slice, slices } from './lib/events.mjs';
import { assertNames, limited } from './lib/limits.mjs';

const text = (n) => 'x'.repeat(n);

// Post events to a fresh trace; resolves with the reply, the final trace and the download.
async function traced(server, events, request = {}) {
  const { id } = await server.createTrace(request);
  const reply = await server.events(id, events);
  assert.equal(reply.posted, reply.accepted + reply.filtered + reply.dropped, JSON.stringify(reply));
  const end = await server.stopTrace(id);
  assert.equal(end.counts.emitted, end.counts.stored + end.counts.filtered + end.counts.dropped, JSON.stringify(end.counts));
  const out = await server.downloadChrome(id);
  return { reply, end, out, events: eventsOf(out) };
}

test('max-name-bytes', async (t) => {
  const server = await limited(t, 'max-name-bytes', 64);
  const { reply, events } = await traced(server, [slice(text(64), 1, 1), slice('é'.repeat(64), 2, 1), slice('arg', 3, 1, { args: { [text(65)]: 1 } })]);
  const lost = reply.dropped, cut = reply.repaired;
  assert.equal(lost + cut, 2, `one name and one key are too long: ${JSON.stringify(reply)}`);
  for (const e of events) assert.ok(Buffer.byteLength(e.name) <= 67, e.name);
  assert.ok(events.some((e) => e.name === text(64)));
});

test('max-event-bytes', async (t) => {
  const server = await limited(t, 'max-event-bytes', 1024);
  const { reply, end, events } = await traced(server, [slice('large', 1, 1, { args: { a: text(2000) } }), slice('small', 2, 1)]);
  assert.deepEqual([reply.accepted, reply.rejected], [1, 1]);
  assert.equal(end.counts.dropped_by_cause['event-too-large'], 1, JSON.stringify(end.counts));
  assert.deepEqual(events.map((e) => e.name), ['small']);
});

test('max-args-per-event', async (t) => {
  const server = await limited(t, 'max-args-per-event', 3);
  const { reply, events } = await traced(server, [slice('four', 1, 1, { args: { a: 1, b: 2, c: 3, d: 4 } }), slice('three', 2, 1, { args: { a: 1, b: 2, c: 3 } })]);
  assert.equal(reply.rejected + reply.repaired, 1, JSON.stringify(reply));
  assert.deepEqual(events.find((e) => e.name === 'three').args, { a: 1, b: 2, c: 3 });
});

test('max-stream-metadata-bytes', async (t) => {
  const server = await limited(t, 'max-stream-metadata-bytes', 1024);
  const { id } = await server.createTrace({});
  const body = { large: text(3000), traceEvents: slices(2) };
  const r = await server.request('POST', `/traces/${id}/files`, { body });
  if (r.status !== 201) return assertNames(r, 'max-stream-metadata-bytes', 1024);
  const end = await server.stopTrace(id);
  const out = await server.downloadChrome(id);
  assert.equal(eventsOf(out).length, 2);
  assert.equal(out.large, undefined);
  assert.match(JSON.stringify(end) + JSON.stringify(out.traceplane), /top-level|metadata|members/, 'what was left out is told');
});

test('max-stream-metadata-events', async (t) => {
  const server = await limited(t, 'max-stream-metadata-events', 16);
  const metas = Array.from({ length: 40 }, (_, i) => ({ ph: 'M', name: 'thread_name', pid: 1, tid: i, args: { name: `thread ${i}` } }));
  const { end, out } = await traced(server, [...metas, slice('k', 1, 1)]);
  assert.equal(end.counts.dropped_by_cause['over-limit'], 24, JSON.stringify(end.counts));
  assert.equal(end.outcome, 'lossy');
  assert.equal(out.traceEvents.filter((e) => e.name === 'thread_name').length, 16);
});

test('max-stream-tracks', async (t) => {
  const server = await limited(t, 'max-stream-tracks', 16);
  const { end, events } = await traced(server, Array.from({ length: 40 }, (_, i) => slice(`k${i}`, i, 1, { tid: i })));
  assert.equal(end.counts.dropped_by_cause['over-limit'], 24, JSON.stringify(end.counts));
  assert.equal(events.length, 16);
});

test('max-stream-names and max-stream-names-bytes: others are stored each time', async (t) => {
  for (const [name, max] of [['max-stream-names', 16], ['max-stream-names-bytes', 1024]]) {
    const server = await limited(t, name, max);
    const { events } = await traced(server, slices(500, text(20)));
    assert.equal(new Set(events.map((e) => e.name)).size, 500, name);
  }
});

test('max-open-slices: of too many begins the oldest wait no longer for their end', async (t) => {
  const server = await limited(t, 'max-open-slices', 16);
  const at = (ph, i, ts) => ({ ph, cat: 'ascend.KERNEL', name: `b${i}`, pid: 1, tid: 1, ts });
  const many = Array.from({ length: 40 }, (_, i) => i);
  const { end, events } = await traced(server, [...many.map((i) => at('B', i, i)), ...many.map((i) => at('E', 39 - i, 100 + i))]);
  assert.equal(events.filter((e) => e.ph === 'X').length, 16, 'the newest have their ends');
  assert.equal(events.filter((e) => e.args?.unfinished === true).length, 24, 'the others are there, unfinished');
  assert.equal(end.counts.dropped_by_cause['unmatched-end'], 24, JSON.stringify(end.counts));
  assert.equal(end.outcome, 'lossy');
});

test('max-spill-bytes: what does not fit into memory is sorted all the same', async (t) => {
  const server = await limited(t, 'max-spill-bytes', 1 << 20);
  const events = Array.from({ length: 20000 }, (_, i) => slice(`k${i}`, (i * 7919) % 20000, 1, { args: { a: text(100) } }));
  const { events: got } = await traced(server, events);
  assert.equal(got.length, 20000);
  assert.ok(got.every((e, i) => i === 0 || got[i - 1].ts <= e.ts), 'in order of time');
});

test('max-trace-bytes', async (t) => {
  const server = await limited(t, 'max-trace-bytes', 1 << 20);
  const { id } = await server.createTrace({});
  let accepted = 0, last;
  for (let seq = 0; seq < 200; seq++) {
    last = await server.request('POST', `/traces/${id}/events?seq=${seq}`, { body: slices(1000, `${text(50)}${seq}`) });
    if (last.status !== 200) break;
    accepted += last.json().accepted;
  }
  assertNames(last, 'max-trace-bytes', 1 << 20);
  const end = await server.waitFinal(id);
  assert.deepEqual([end.state, end.counts.stored], ['complete', accepted]);
});

test('max-streams-per-trace', async (t) => {
  const server = await limited(t, 'max-streams-per-trace', 2);
  const { id } = await server.createTrace({});
  for (const rank of [0, 1]) await server.events(id, slices(1), { rank });
  assertNames(await server.request('POST', `/traces/${id}/events?rank=2`, { body: slices(1) }), 'max-streams-per-trace', 2);
  assertNames(await server.request('POST', `/traces/${id}/files?rank=3`, { body: { traceEvents: slices(1) } }), 'max-streams-per-trace', 2);
  assert.equal((await server.stopTrace(id)).counts.stored, 2);
});
