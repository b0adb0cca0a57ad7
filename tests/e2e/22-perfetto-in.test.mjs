// A Perfetto download posted again gives the same slices.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf, slice } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

const key = (base, e) => [e.ph, e.cat, e.name, e.ts, e.dur, JSON.stringify(e.args ?? {}), String(e.id ?? '')].join('|');

async function roundTrip(server, id, how) {
  const first = await server.downloadChrome(id);
  const perfetto = await server.download(id, '?format=perfetto');
  const copy = await server.createTrace({});
  const headers = { 'content-type': 'application/x-perfetto-trace' };
  const reply = (await server.expect('POST', `/traces/${copy.id}/${how}`, [200, 201], { body: perfetto, headers })).json();
  assert.equal(reply.rejected, 0, JSON.stringify(reply));
  await server.stopTrace(copy.id);
  const second = await server.downloadChrome(copy.id);
  assert.deepEqual(eventsOf(second).map((e) => key(second, e)).sort(), eventsOf(first).map((e) => key(first, e)).sort());
}

test('slices, arguments, counters, instants, flows and asynchronous events survive', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL', 'ascend.HW_COUNTER']);
  const { id } = await server.createTrace({});
  await server.events(id, [
    slice('a', 1, 10, { args: { n: 9007199254740, s: 'x"y', f: 1.5, b: true, list: [1, { k: null }] } }), slice('b', 2, 3), slice('overlaps', 5, 10),
    { ph: 'i', s: 't', cat: 'ascend.KERNEL', name: 'now', pid: 1, tid: 1, ts: 4 }, { ph: 'C', cat: 'ascend.HW_COUNTER', name: 'HBM', pid: 1, tid: 0, ts: 4, args: { read: 1, write: 2.5 } },
    { ph: 's', id: 7, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 1 }, { ph: 'f', bp: 'e', id: 7, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 2 },
    { ph: 'b', id: '0x1', cat: 'ascend.KERNEL', name: 'copy', pid: 1, tid: 1, ts: 6 }, { ph: 'e', id: '0x1', cat: 'ascend.KERNEL', name: 'copy', pid: 1, tid: 1, ts: 9 },
  ]);
  await server.stopTrace(id);
  await roundTrip(server, id, 'events');
  await roundTrip(server, id, 'files');
});

test('what is no Perfetto is refused and leaves nothing', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  const headers = { 'content-type': 'application/x-perfetto-trace' };
  for (const body of [Buffer.from('{"traceEvents":[]}'), Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f, 1]), Buffer.alloc(100, 0xff)])
    await server.problem('POST', `/traces/${id}/events`, 400, 'damaged-body', { body, headers });
  assert.equal((await server.stopTrace(id)).outcome, 'empty');
});
