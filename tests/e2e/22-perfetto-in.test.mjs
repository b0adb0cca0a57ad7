// A Perfetto download posted again gives the same slices.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf, slice } from './lib/events.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
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

test('a merged download keeps its names and ranks, and its operations apart', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  const operation = (id2) => ['b', 'e'].map((ph, i) => ({ ph, cat: 'op', name: Object.keys(id2)[0], pid: 1, tid: 1, ts: i, id2 }));
  const named = (rank) => [{ ph: 'M', name: 'process_name', pid: 1, tid: 0, args: { name: `trainer ${rank}` } }, slice('a', 1, 10)];
  for (const rank of [0, 3]) await server.events(id, [...named(rank), ...operation({ global: '0x5' }), ...operation({ local: '0x5' })], { rank });
  await server.stopTrace(id);
  const copy = await server.createTrace({});
  const headers = { 'content-type': 'application/x-perfetto-trace' };
  await server.expect('POST', `/traces/${copy.id}/files`, [201], { body: await server.download(id, '?format=perfetto'), headers });
  await server.stopTrace(copy.id);
  for (const out of [await server.downloadChrome(id), await server.downloadChrome(copy.id)]) {
    const ids = (name, of) => new Set(eventsOf(out).filter((e) => e.name === name).map(of)).size;
    assert.deepEqual([ids('a', (e) => e.pid), ids('global', (e) => e.id2.global), ids('local', (e) => `${e.pid} ${e.id2.local}`)], [2, 2, 2]);
    const names = out.traceEvents.filter((e) => e.name === 'process_name').map((e) => e.args.name);
    for (const rank of [0, 3]) assert.ok(names.some((n) => n.includes(`trainer ${rank}`)), String(names));
  }
  const judge = await TraceProcessor.load(await server.download(copy.id, '?format=perfetto'));
  assert.deepEqual(await judge.errors(), []);
  assert.equal((await judge.query("select count(*) as n from slice where dur = 1000 and category = 'op'"))[0].n, 4n);
});

test('what is no Perfetto is refused and leaves nothing', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  const headers = { 'content-type': 'application/x-perfetto-trace' };
  for (const body of [Buffer.from('{"traceEvents":[]}'), Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f, 1]), Buffer.alloc(100, 0xff)])
    await server.problem('POST', `/traces/${id}/events`, 400, 'damaged-body', { body, headers });
  assert.equal((await server.stopTrace(id)).outcome, 'empty');
});
