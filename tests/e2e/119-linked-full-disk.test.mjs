// What a linked program holds while the disk of the service is full waits; it is dropped only when it never comes.
import assert from 'node:assert/strict';
import test from 'node:test';
import { checkConservation } from './lib/conserved.mjs';
import { onSmallDisk, underSizeLimit } from './lib/full_disk.mjs';
import { firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { serve } from './lib/server.mjs';

const MEDIA = { 'a small file system': onSmallDisk, 'a limit of file sizes': underSizeLimit };
const NO_ROOM = /full|No space|too large/i;
const BEFORE = 2000, WAITING = 20000;

// The trace when it is as wanted; each look at it on the way adds up.
async function look(server, id, wanted) {
  for (const end = Date.now() + 100000; ;) {
    const view = (await server.get(`/traces/${id}`)).json();
    checkConservation(view);
    assert.equal(view.counts.dropped, 0, JSON.stringify(view.counts));
    if (wanted(view)) return view;
    if (Date.now() > end) throw new Error(`not as wanted: ${JSON.stringify(view)}`);
    await new Promise((r) => setTimeout(r, 20));
  }
}

// A program that records into a trace of a service whose disk is full, and has been refused.
async function refused(t, make) {
  const disk = await make(t);
  if (disk === null) return t.skip('nobody may mount a file system here');
  const { server } = disk;
  const p = await startLinked(t, server, { rank: 0, env: { TRACEPLANE_RING_BYTES: '16M' } });
  const { id } = await server.createTrace();
  await p.recording();
  await p.tell(`slices ${BEFORE}`);
  await look(server, id, (v) => v.counts.stored >= BEFORE);
  disk.fill();
  await p.tell(`slices ${WAITING}`);
  const view = await look(server, id, (v) => v.waiting);
  return { ...disk, p, id, view };
}

function checkNumbers(download, p) {
  const numbers = numbersOf(download).get(`${p.pid}/100`);
  assert.equal(numbers.length, BEFORE + WAITING);
  assert.equal(firstBreak(numbers), undefined);
}

for (const [medium, make] of Object.entries(MEDIA)) {
  test(`${medium}: what waits is told with its reason, and stored when there is room`, async (t) => {
    const scene = await refused(t, make);
    if (!scene) return;
    const { server, id, p, view } = scene;
    for (const { waiting } of [view, view.matched[0], view.streams[0]]) {
      assert.equal(waiting.batches, 1);
      assert.ok(waiting.events > 0, JSON.stringify(waiting));
      assert.match(waiting.reason, NO_ROOM);
    }
    assert.equal(await server.metric('traceplane_events_waiting'), view.waiting.events);
    assert.match((await server.get('/metrics')).body.toString(), /^traceplane_events_total\{result="dropped"\} 0$/m);
    scene.free();
    await look(server, id, (v) => !v.waiting && v.counts.stored >= BEFORE + WAITING);
    const end = await server.stopTrace(id);
    assert.equal(end.outcome, 'complete', end.reason);
    checkConservation(end);
    checkNumbers(await server.downloadChrome(id), p);
  });

  test(`${medium}: what never comes again was dropped for the storage`, async (t) => {
    const scene = await refused(t, make);
    if (!scene) return;
    const { server, id, p } = scene;
    await p.kill();
    scene.free();
    const end = await server.stopTrace(id);
    checkConservation(end);
    assert.deepEqual(Object.keys(end.counts.dropped_by_cause), ['storage-failed'], JSON.stringify(end.counts));
    assert.ok(end.counts.dropped > 0);
    assert.equal(end.waiting, undefined);
    assert.match(end.reason, /storage-failed/);
    assert.match(end.streams[0].reason, NO_ROOM);
  });
}

test('what waits is still waiting after a kill of the service, and is stored once', async (t) => {
  const { server: before, id, p } = await refused(t, underSizeLimit);
  await before.kill();
  const server = await serve(t, { dataDir: before.dataDir, args: ['--listen', `127.0.0.1:${before.port}`] });
  await look(server, id, (v) => !v.waiting && v.counts.stored >= BEFORE + WAITING);
  const end = await server.stopTrace(id);
  assert.equal(end.outcome, 'complete', end.reason);
  checkConservation(end);
  checkNumbers(await server.downloadChrome(id), p);
});
