// 1,000 batches from 8 connections: stored + filtered + rejected = posted, exactly.
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { Random, seedOf } from './lib/random.mjs';
import { eventsOf } from './lib/events.mjs';
import { pick, serve } from './lib/server.mjs';

const BATCHES = pick(1000, 200), CONNECTIONS = 8, EVENTS = pick(100, 20);

// A batch with events that are stored, filtered and rejected; counts says how many of each.
function batch(random, seq, counts) {
  return Array.from({ length: EVENTS }, (_, i) => {
    const kind = random.pick(['stored', 'stored', 'filtered', 'rejected']);
    counts[kind]++;
    const event = { ph: 'X', cat: 'ascend.KERNEL', name: `e-${seq}-${i}`, pid: 1, tid: seq % 4, ts: seq * EVENTS + i, dur: 1 };
    if (kind === 'filtered') event.cat = 'ascend.SYNC';
    if (kind === 'rejected') delete event.ts;
    return event;
  });
}

test('every event of every batch is accounted for', async (t) => {
  const random = new Random(seedOf(t));
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL', 'ascend.SYNC']);
  const { id } = await server.createTrace({ filter: { include: ['ascend.KERNEL'] } });
  const counts = { stored: 0, filtered: 0, rejected: 0 }, told = { stored: 0, filtered: 0, rejected: 0, posted: 0 };
  server.agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let seq = 0;
  const worker = async () => {
    while (seq < BATCHES) {
      const n = ++seq;
      const r = await server.events(id, batch(random, n, counts), { seq: n, rank: n % 3 });
      told.posted += r.posted;
      told.stored += r.accepted;
      told.filtered += r.filtered;
      told.rejected += r.rejected;
      assert.equal(r.posted, r.accepted + r.filtered + r.dropped, `batch ${n}`);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  assert.deepEqual(told, { ...counts, posted: BATCHES * EVENTS });
  const end = await server.stopTrace(id);
  assert.deepEqual([end.counts.emitted, end.counts.stored, end.counts.filtered, end.counts.dropped], [told.posted, told.stored, told.filtered, told.rejected]);
  const names = eventsOf(await server.downloadChrome(id)).map((e) => e.name);
  assert.equal(names.length, told.stored);
  assert.equal(new Set(names).size, told.stored);
  const summary = (await server.expect('GET', `/traces/${id}/summary`, [200])).json();
  assert.ok(JSON.stringify(summary).includes('ascend.KERNEL'));
});
