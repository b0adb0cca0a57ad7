// Who a linked program is to the service: two clients in one process, and one that was forgotten in the middle of a trace.
import assert from 'node:assert/strict';
import test from 'node:test';
import { firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { serve } from './lib/server.mjs';

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// The producers, when there are n.
async function producers(server, n) {
  for (let i = 0; ; i++) {
    const { items } = (await server.get('/producers')).json();
    if (items.length === n) return items;
    assert.ok(i < 3000, `${items.length} producers instead of ${n}`);
    await sleep(20);
  }
}

// A program whose second client has all the settings of the first, as when two libraries record in one process.
async function startTwo(t, server) {
  const p = await startLinked(t, server, { rank: 0 });
  await p.tell('other open');
  const known = await producers(server, 2);
  assert.deepEqual(known.map((k) => [k.name, k.rank, k.pid]), Array(2).fill(['rank-0', 0, p.pid]));
  return p;
}

test('two clients of one process are two producers: each has its events in the trace', async (t) => {
  const server = await serve(t);
  const p = await startTwo(t, server);
  const trace = await server.createTrace();
  await p.tell('wait 100000');
  await p.tell('slices 1000');
  await p.tell('other 500');
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.deepEqual(end.matched.map((m) => m.counts.stored).sort((a, b) => a - b).map((n) => n >= 1000), [false, true]);
  const found = numbersOf(await server.downloadChrome(trace.id));
  assert.deepEqual([found.get(`${p.pid}/100`).length, found.get(`${p.pid}/200`).length], [1000, 500]);
});

test('one that closes while the other records takes nothing of it away', async (t) => {
  const server = await serve(t);
  const p = await startTwo(t, server);
  const trace = await server.createTrace();
  await p.tell('wait 100000');
  await p.tell('slices 100');
  await p.tell('other 500');
  await p.tell('other close');
  await producers(server, 1);
  await p.tell('slices 900');
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  const found = numbersOf(await server.downloadChrome(trace.id));
  const first = found.get(`${p.pid}/100`);
  assert.deepEqual([first.length, firstBreak(first), found.get(`${p.pid}/200`).length], [1000, undefined, 500]);
});

test('one that is forgotten while it records comes back as the same one: nothing is lost or doubled', async (t) => {
  const server = await serve(t);
  // Batches are on their way at every moment.
  const env = { TRACEPLANE_WHEN_FULL: 'block', TRACEPLANE_BLOCK_US: '1000000', TRACEPLANE_RING_BYTES: '64K' };
  const p = await startLinked(t, server, { rank: 0, args: ['--threads', '1', '--pause-us', '10'], env });
  const [known] = await producers(server, 1);
  const trace = await server.createTrace();
  await p.tell('wait 100000');
  const times = 7; // each comes back later than the one before
  for (let i = 0; i < times; i++) {
    await server.expect('DELETE', `/producers/${known.id}`, [204]);
    await p.tell('slices 2000');
    assert.equal((await producers(server, 1))[0].id, known.id);
    await p.tell('slices 2000');
  }
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.deepEqual(end.matched.map((m) => m.state), ['done']);
  const found = numbersOf(await server.downloadChrome(trace.id));
  assert.deepEqual([found.get(`${p.pid}/100`).length, firstBreak(found.get(`${p.pid}/0`))], [4000 * times, undefined]);
});
