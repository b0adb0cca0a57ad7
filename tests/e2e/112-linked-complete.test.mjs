// A trace of linked programs is complete when they are done, before it is sorted; what a kill or a download meets then is all of it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { checkConservation } from './lib/conserved.mjs';
import { firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { Server, dataFolder } from './lib/server.mjs';

const SLICES = 20000, RANKS = 3;

// Programs that record SLICES each, until the trace is complete.
async function record(t, server) {
  const all = [];
  for (let rank = 0; rank < RANKS; rank++) all.push(await startLinked(t, server, { rank, env: { TRACEPLANE_RING_BYTES: '16M' } }));
  const { id } = await server.createTrace();
  await Promise.all(all.map((p) => p.recording()));
  for (const p of all) await p.tell(`slices ${SLICES}`);
  const view = await server.stopTrace(id);
  assert.equal(view.outcome, 'complete', view.reason);
  assert.equal(view.history.at(-1).cause, 'all data is in');
  assert.ok(view.counts.stored >= RANKS * SLICES);
  checkConservation(view);
  return { id, view, all };
}

function checkAll(download, all) {
  const found = numbersOf(download);
  for (const p of all) {
    const numbers = found.get(`${p.pid}/100`);
    assert.equal(numbers?.length, SLICES);
    assert.equal(firstBreak(numbers), undefined);
  }
}

// What is told of a trace, but for the size and the form of what is on disk.
const told = ({ version, bytes, counts, streams, ...rest }) => ({
  ...rest,
  counts: { ...counts, bytes: 0 },
  streams: streams.map(({ state, bytes: b, counts: c, ...s }) => ({ ...s, counts: { ...c, bytes: 0 } })),
});

test('a service that is killed at complete comes back with all of it', async (t) => {
  const dataDir = dataFolder(t);
  let server = await Server.start({ dataDir });
  t.after(() => server.hasExited || server.kill());
  const { id, view: before, all } = await record(t, server);
  await server.kill();
  server = await Server.start({ dataDir });
  const view = (await server.get(`/traces/${id}`)).json();
  assert.deepEqual([view.state, view.outcome, view.counts.stored], ['complete', 'complete', before.counts.stored]);
  checkAll(await server.downloadChrome(id), all);
});

test('downloads at complete are what they are ever after, and nothing that is told changes', async (t) => {
  const server = await Server.start();
  t.after(() => server.hasExited || server.kill());
  const { id, view, all } = await record(t, server);
  const at = await Promise.all([...Array(4)].map(() => server.get(`/traces/${id}/download`)));
  checkAll(JSON.parse(at[0].body.toString('utf8')), all);
  for (const r of at) {
    assert.equal(r.status, 200);
    assert.equal(r.headers.etag, at[0].headers.etag);
    assert.ok(r.body.equals(at[0].body));
  }
  const sealed = (await server.get(`/traces/${id}`)).json();
  assert.deepEqual(sealed.streams.map((s) => s.state), Array(RANKS).fill('sealed'));
  assert.deepEqual(told(sealed), told(view));
  const part = await server.get(`/traces/${id}/download`, { headers: { range: 'bytes=1000-1999', 'if-range': at[0].headers.etag } });
  assert.equal(part.status, 206);
  assert.ok(part.body.equals(at[0].body.subarray(1000, 2000)));
});

test('a delete at complete leaves nothing', async (t) => {
  const dataDir = dataFolder(t);
  const server = await Server.start({ dataDir });
  t.after(() => server.hasExited || server.kill());
  const { id } = await record(t, server);
  await server.expect('DELETE', `/traces/${id}`, [204]);
  for (let i = 0; i < 3000 && fs.existsSync(`${dataDir}/traces/${id}`); i++) await new Promise((r) => setTimeout(r, 20));
  assert.equal(fs.existsSync(`${dataDir}/traces/${id}`), false);
});
