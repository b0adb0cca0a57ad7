// A disk that is full: what cannot be stored is refused with 507, whole, and nobody takes it for stored; with room
// again, the same service goes on.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import zlib from 'node:zlib';
import { eventsOf, slices } from './lib/events.mjs';
import { onSmallDisk, underSizeLimit } from './lib/full_disk.mjs';
import { serve } from './lib/server.mjs';

const MANY = 20000; // events of a batch that fits into no left-over
const MEDIA = { 'a small file system': onSmallDisk, 'a limit of file sizes': underSizeLimit };
const full = (server, target, body) => server.problem('POST', target, 507, 'storage-full', { body });
const events = (server, id, seq, name, n = MANY) => server.events(id, slices(n, name), { rank: 0, seq });

// A service with a full disk, a trace that records, and one batch in it.
async function recording(t, make) {
  const disk = await make(t);
  if (disk === null) return t.skip('nobody may mount a file system here');
  await disk.server.registerTypes(['ascend.KERNEL']);
  const { id } = await disk.server.createTrace();
  await events(disk.server, id, 0, 'before', 10);
  return { ...disk, id };
}

const blobsOf = (server) => fs.readdirSync(path.join(server.dataDir, 'data'), { recursive: true }).filter((f) => /\.(log|pftrace|index)$/.test(f)).sort();
const stored = async (server, id, name) => eventsOf(await server.downloadChrome(id)).filter((e) => e.name.startsWith(name)).length;

for (const [medium, make] of Object.entries(MEDIA)) {
  test(`${medium}: refused batches are 507 and not in the trace, and it says so`, async (t) => {
    const disk = await recording(t, make);
    if (!disk) return;
    const { server, id } = disk;
    disk.fill();
    for (const seq of [1, 2, 1]) {
      const p = await full(server, `/traces/${id}/events?rank=0&seq=${seq}`, { traceEvents: slices(MANY, 'lost') });
      assert.match(p.detail, /nothing was stored in stream 1/);
    }
    disk.free();
    const end = await server.stopTrace(id);
    assert.equal(end.outcome, 'lossy', JSON.stringify(end));
    assert.match(end.reason, new RegExp(`${2 * MANY} events`));
    assert.deepEqual([end.counts.emitted, end.counts.stored, end.counts.dropped_total ?? end.counts.emitted - end.counts.stored], [2 * MANY + 10, 10, 2 * MANY]);
    assert.equal(await stored(server, id, 'before'), 10);
    assert.equal(await stored(server, id, 'lost'), 0);
  });

  test(`${medium}: a batch that is sent again when there is room is in the trace once`, async (t) => {
    const disk = await recording(t, make);
    if (!disk) return;
    const { server, id } = disk;
    disk.fill();
    await full(server, `/traces/${id}/events?rank=0&seq=1`, { traceEvents: slices(MANY, 'again') });
    disk.free();
    assert.equal((await events(server, id, 1, 'again')).accepted, MANY);
    assert.equal((await events(server, id, 1, 'again')).duplicate, true);
    const end = await server.stopTrace(id);
    assert.deepEqual([end.outcome, end.counts.emitted, end.counts.stored], ['complete', MANY + 10, MANY + 10]);
    assert.equal(await stored(server, id, 'again'), MANY);
  });

  test(`${medium}: a refused file leaves no stream and no data behind`, async (t) => {
    const disk = await recording(t, make);
    if (!disk) return;
    const { server, id } = disk;
    const file = zlib.gzipSync(JSON.stringify({ traceEvents: slices(MANY, 'file') }));
    const before = blobsOf(server);
    disk.fill();
    await full(server, `/traces/${id}/files?rank=1&name=a.json.gz`, file);
    assert.deepEqual(blobsOf(server), before);
    assert.equal((await server.get(`/traces/${id}`)).json().streams.length, 1);
    disk.free();
    await server.expect('POST', `/traces/${id}/files?rank=1&name=a.json.gz`, [201], { body: file });
    const end = await server.stopTrace(id);
    assert.deepEqual([end.outcome, end.counts.stored], ['complete', MANY + 10]);
  });

  test(`${medium}: no trace, type or producer is half there`, async (t) => {
    const disk = await recording(t, make);
    if (!disk) return;
    const { server, id } = disk;
    await server.stopTrace(id);
    const lists = async () => Promise.all(['/traces', '/types?scope=custom', '/producers', '/jobs'].map(async (l) => (await server.get(l)).json().items.length));
    disk.fill();
    // What the store has of its file may hold a row or two more.
    for (let i = 0; i < 50 && (await server.post('/types', { plugin: 'room', type_name: `T${i}`, job: `room-${i}` })).status !== 507; i++) ;
    const before = await lists();
    await full(server, '/traces', { label: 'x'.repeat(200), metadata: { a: 'x'.repeat(8192) } });
    await full(server, '/traces', { job: 'another' });
    await full(server, '/types', { plugin: 'ascend', type_name: 'NEW', description: 'x'.repeat(200) });
    await full(server, '/producers', { name: 'p', rank: 7, host: 'x'.repeat(200) });
    assert.deepEqual(await lists(), before);
    assert.equal((await server.expect('POST', '/types', [200], { body: { plugin: 'ascend', type_name: 'KERNEL' } })).json().id, 154);
    disk.free();
    const again = await server.createTrace();
    await server.stopTrace(again.id);
    await server.registerTypes(['ascend.NEW']);
    await server.expect('POST', '/producers', [201], { body: { name: 'p', rank: 7 } });
  });

  test(`${medium}: a trace that cannot be stopped stays as it is, and can be stopped later`, async (t) => {
    const disk = await recording(t, make);
    if (!disk) return;
    const { server, id } = disk;
    disk.fill();
    await full(server, `/traces/${id}/stop`);
    assert.equal((await server.get(`/traces/${id}`)).json().state, 'recording');
    disk.free();
    assert.equal((await server.stopTrace(id)).outcome, 'complete');
  });

  test(`${medium}: readiness tells why, and comes back`, async (t) => {
    const disk = await recording(t, make);
    if (!disk) return;
    await disk.server.expect('GET', '/readyz', [200]);
    disk.fill();
    const p = await disk.server.problem('GET', '/readyz', 503, 'not-ready');
    assert.match(p.detail, /full|No space|too large/i);
    await disk.server.expect('GET', '/healthz', [200]);
    disk.free();
    await disk.server.expect('GET', '/readyz', [200]);
    assert.ok((await disk.server.metric('traceplane_storage_failures_total')) > 0);
  });
}

test('what was acknowledged before the disk was full is there after a kill', async (t) => {
  const disk = await recording(t, underSizeLimit);
  disk.fill();
  await full(disk.server, `/traces/${disk.id}/events?rank=0&seq=1`, { traceEvents: slices(MANY, 'lost') });
  await disk.server.kill();
  const server = await serve(t, { dataDir: disk.server.dataDir });
  const end = await server.stopTrace(disk.id);
  assert.equal(end.counts.stored, 10);
  assert.equal(await stored(server, disk.id, 'before'), 10);
  assert.equal(await stored(server, disk.id, 'lost'), 0);
});
