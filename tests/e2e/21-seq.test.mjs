// A batch with a number is stored once, however often it is sent.
import assert from 'node:assert/strict';
import test from 'node:test';
import { namesOf, slice } from './lib/events.mjs';
import { Server, serve } from './lib/server.mjs';

test('a repeated batch is a duplicate and adds nothing', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  const post = (name, query) => server.events(id, [slice(name, 1, 1)], query);
  assert.equal((await post('a', { seq: 1 })).duplicate, false);
  const again = await post('a', { seq: 1 });
  assert.deepEqual([again.duplicate, again.posted], [true, 1]);
  assert.equal((await post('b', { seq: 0 })).duplicate, false);
  assert.equal((await post('c', { seq: 7 })).duplicate, false);
  assert.equal((await post('d', { seq: 5 })).duplicate, false);
  assert.equal((await post('c', { seq: 7 })).duplicate, true);
  assert.equal((await post('e', { seq: 1, rank: 1 })).duplicate, false, 'each stream has numbers of its own');
  const end = await server.stopTrace(id);
  assert.deepEqual(end.streams.map((s) => [s.batches, s.duplicate_batches]), [[4, 2], [1, 0]]);
  assert.deepEqual(namesOf(await server.downloadChrome(id)), [...'abcde']);
});

test('numbers are remembered over a restart and a kill', async (t) => {
  let server = await Server.start();
  const { dataDir } = server;
  t.after(() => server.stop());
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  for (const end of ['terminate', 'kill']) {
    await server.events(id, [slice(end, 1, 1)], { seq: end.length });
    await server[end]();
    server = await Server.start({ dataDir });
    server.ownsData = true;
    assert.equal((await server.events(id, [slice(end, 1, 1)], { seq: end.length })).duplicate, true, `after ${end}`);
  }
  assert.equal((await server.stopTrace(id)).counts.stored, 2);
  assert.deepEqual(namesOf(await server.downloadChrome(id)), ['kill', 'terminate']);
});
