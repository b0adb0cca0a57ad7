// Watching a trace: moves at once, progress twice a second, an end after the final state.
import assert from 'node:assert/strict';
import test from 'node:test';
import { slices } from './lib/events.mjs';
import { serve } from './lib/server.mjs';
import { watch } from './lib/watch.mjs';

test('a watch tells moves and progress and ends with the trace', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({ start: { when: 'manual' } });
  const w = await watch(server, id);
  assert.match(w.headers['content-type'], /^text\/event-stream/);
  assert.equal((await w.next(() => true)).data.state, 'prepared');
  await server.expect('POST', `/traces/${id}/start`, [202]);
  await w.next((m) => m.event === 'state' && m.data.state === 'recording');
  await server.events(id, slices(7));
  const progress = await w.next((m) => m.event === 'progress' && m.data.counts.stored === 7);
  assert.equal(progress.data.id, id);
  await server.expect('POST', `/traces/${id}/stop`, [202]);
  await w.next((m) => m.event === 'state' && m.data.state === 'complete');
  await w.ended;
  assert.equal(w.messages.at(-1).data.outcome, 'complete');
});

test('progress comes about twice a second however much is posted', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  const began = Date.now(), w = await watch(server, id);
  let sent = 0, isTold = false;
  w.next((m) => m.event === 'progress').then(() => { isTold = true; });
  for (; !isTold || Date.now() < began + 1500; sent++) await server.events(id, slices(3));
  const n = w.messages.filter((m) => m.event === 'progress').length, ms = Date.now() - began;
  assert.ok(n <= 1 + ms / 500, `${n} messages of ${sent} batches in ${ms} ms`);
  w.close();
});

test('a watch of what has ended or was deleted ends at once', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  await server.stopTrace(id);
  const w = await watch(server, id);
  await w.ended;
  assert.deepEqual(w.messages.map((m) => m.data.state), ['complete']);
  await server.problem('GET', '/traces/nowhere/watch', 404, 'not-found');
});

test('watchers that go away are noticed', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  const before = server.usage().files;
  const watches = await Promise.all(Array.from({ length: 20 }, () => watch(server, id)));
  assert.ok(server.usage().files >= before + 20);
  for (const w of watches) w.close();
  for (let i = 0; i < 3000 && server.usage().files > before; i++) await new Promise((r) => setTimeout(r, 20));
  assert.ok(server.usage().files <= before, `${server.usage().files} files, ${before} before`);
});

test('a server that ends does not wait for watchers', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  const w = await watch(server, id);
  await server.terminate(); // it fails when that takes too long
  await w.ended;
});
