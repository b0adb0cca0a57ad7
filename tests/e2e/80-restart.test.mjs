// A clean end in each state, then a new start on the same data: states are true and data is there.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { namesOf, slices } from './lib/events.mjs';
import { Server, serve } from './lib/server.mjs';

// End the server and start another one on its data; the test's hook ends that one.
async function restart(t, server, args) {
  await server.terminate();
  const next = await Server.start({ dataDir: server.dataDir, args });
  t.after(() => next.stop());
  return next;
}
async function first(t, options) {
  const server = await Server.start(options);
  t.after(() => fs.rmSync(server.dataDir, { recursive: true, force: true }));
  await server.registerTypes(['ascend.KERNEL']);
  return server;
}

test('a prepared trace is prepared, and can be started', async (t) => {
  const server = await first(t);
  const { id } = await server.createTrace({ start: { when: 'manual' }, label: 'waits', metadata: { a: 1 } });
  const next = await restart(t, server);
  const trace = (await next.get(`/traces/${id}`)).json();
  assert.deepEqual([trace.state, trace.label, trace.metadata], ['prepared', 'waits', { a: 1 }]);
  await next.problem('POST', '/types', 409, 'registry-frozen', { body: { plugin: 'a', type_name: 'NEW' } });
  await next.expect('POST', `/traces/${id}/start`, [202]);
  await next.events(id, slices(2));
  assert.equal((await next.stopTrace(id)).counts.stored, 2);
});

test('a recording trace goes on with all that it had', async (t) => {
  const server = await first(t);
  const { id } = await server.createTrace({ filter: { include: ['ascend.KERNEL'] } });
  await server.events(id, slices(5, 'before'), { rank: 0, seq: 1 });
  const next = await restart(t, server);
  const trace = (await next.get(`/traces/${id}`)).json();
  assert.equal(trace.state, 'recording');
  assert.equal(trace.counts.stored, 5);
  assert.equal((await next.problem('POST', '/traces', 409, 'trace-active', { body: {} })).trace_id, id);
  await next.events(id, slices(5, 'after'), { rank: 0, seq: 2 });
  const end = await next.stopTrace(id);
  assert.deepEqual([end.outcome, end.counts.stored, end.streams.length], ['complete', 10, 1]);
  assert.equal(namesOf(await next.downloadChrome(id)).length, 10);
});

test('a stopping trace comes to its end', async (t) => {
  const args = ['--max-trace-stopping-ms', '1500'];
  const server = await first(t, { args });
  const producer = (await server.expect('POST', '/producers', [201], { body: { name: 'slow', rank: 0 } })).json();
  const sync = (body) => server.expect('POST', `/producers/${producer.id}/sync`, [200], { body: { wait_ms: 0, ...body } });
  const { id } = await server.createTrace({});
  await server.events(id, slices(4), { rank: 1 });
  await sync({});
  for (const command of ['prepare', 'start']) await sync({ acks: [{ trace_id: id, command }] });
  await server.expect('POST', `/traces/${id}/stop`, [202]);
  assert.equal((await server.get(`/traces/${id}`)).json().state, 'stopping');
  const next = await restart(t, server, args);
  const end = await next.waitFinal(id);
  assert.deepEqual([end.state, end.outcome, end.counts.stored], ['complete', 'partial', 4]);
  assert.equal(namesOf(await next.downloadChrome(id)).length, 4);
});

test('what has ended stays, byte for byte; deadlines that passed meanwhile are kept', async (t) => {
  const server = await first(t);
  const done = await server.createTrace({});
  await server.events(done.id, slices(50));
  const before = await server.stopTrace(done.id);
  const bytes = await server.download(done.id), perfetto = await server.download(done.id, '?format=perfetto');
  const short = await server.createTrace({ stop: { duration_ms: 50 } });
  const next = await restart(t, server);
  const after = (await next.get(`/traces/${done.id}`)).json();
  assert.deepEqual({ ...after, version: 0 }, { ...before, version: 0 });
  assert.ok((await next.download(done.id)).equals(bytes));
  assert.ok((await next.download(done.id, '?format=perfetto')).equals(perfetto));
  assert.match((await next.waitFinal(short.id)).history.find((h) => h.state === 'stopping').cause, /duration|restart/);
  assert.deepEqual((await next.get('/types?scope=custom')).json().items.map((x) => x.name), ['ascend.KERNEL']);
});

test('two servers do not share a data directory', async (t) => {
  const server = await serve(t);
  await assert.rejects(Server.start({ dataDir: server.dataDir }), (e) => /ended at once/.test(e.message) && e.message.includes(server.dataDir));
  await server.expect('GET', '/healthz', [200]);
});
