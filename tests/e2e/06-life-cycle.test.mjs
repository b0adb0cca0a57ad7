// prepared, recording, stopping, complete: each move with its time and cause.
import assert from 'node:assert/strict';
import test from 'node:test';
import { slices } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/;

test('a trace that starts by hand goes through all states and tells how', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const made = await server.request('POST', '/traces', { body: { start: { when: 'manual' }, label: 'by hand', metadata: { commit: 'abc', n: 1 } } });
  const trace = made.json();
  assert.equal(made.headers.location, `/v1/traces/${trace.id}`);
  assert.match(trace.id, /^[0-9a-z]{26}$/);
  assert.deepEqual([trace.state, trace.outcome, trace.label, trace.job], ['prepared', null, 'by hand', 'default']);
  await server.problem('POST', `/traces/${trace.id}/events`, 409, 'illegal-state', { body: { traceEvents: slices(1) } });
  const started = (await server.expect('POST', `/traces/${trace.id}/start`, [202])).json();
  assert.equal(started.state, 'recording');
  await server.expect('POST', `/traces/${trace.id}/start`, [202]);
  await server.events(trace.id, slices(10));
  const end = await server.stopTrace(trace.id);
  assert.deepEqual([end.state, end.outcome], ['complete', 'complete']);
  assert.deepEqual(end.history.map((h) => h.state), ['prepared', 'recording', 'stopping', 'complete']);
  for (const h of end.history) assert.ok(RFC3339.test(h.at) && h.cause.length > 0, JSON.stringify(h));
  const times = [end.created_at, end.started_at, end.stopped_at, end.finished_at];
  assert.deepEqual([...times].sort(), times);
  assert.deepEqual(end.metadata, { commit: 'abc', n: 1 });
  assert.equal(end.counts.stored, 10);
});

test('moves that do not fit the state are refused and tell the present one', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  await server.expect('POST', `/traces/${id}/cancel`, [202]);
  await server.waitFinal(id);
  for (const move of ['start', 'stop']) {
    const p = await server.problem('POST', `/traces/${id}/${move}`, 409, 'illegal-state');
    assert.deepEqual([p.state, p.trace_id], ['cancelled', id]);
  }
  await server.expect('POST', `/traces/${id}/cancel`, [202]);
  const done = await server.createTrace({});
  await server.stopTrace(done.id);
  await server.expect('POST', `/traces/${done.id}/stop`, [202]);
  assert.equal((await server.problem('POST', `/traces/${done.id}/cancel`, 409, 'illegal-state')).state, 'complete');
  assert.equal((await server.problem('POST', `/traces/${done.id}/events`, 409, 'illegal-state', { body: [] })).state, 'complete');
  await server.problem('POST', '/traces/nowhere/start', 404, 'not-found');
});

test('cancel throws the data away and delete removes what has ended', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  await server.events(id, slices(10));
  assert.equal((await server.problem('DELETE', `/traces/${id}`, 409, 'illegal-state')).state, 'recording');
  await server.expect('POST', `/traces/${id}/cancel`, [202]);
  assert.equal((await server.waitFinal(id)).state, 'cancelled');
  await server.problem('GET', `/traces/${id}/download`, 409, 'illegal-state');
  await server.problem('GET', `/traces/${id}/summary`, 409, 'illegal-state');
  await server.expect('DELETE', `/traces/${id}`, [204]);
  await server.problem('GET', `/traces/${id}`, 404, 'not-found');
  await server.problem('DELETE', `/traces/${id}`, 404, 'not-found');
});

test('one active trace a job: the second is told which', async (t) => {
  const server = await serve(t);
  const { id } = await server.createTrace({});
  const p = await server.problem('POST', '/traces', 409, 'trace-active', { body: {} });
  assert.deepEqual([p.trace_id, p.state, p.job], [id, 'recording', 'default']);
  const other = await server.createTrace({ job: 'other' });
  assert.equal((await server.get('/jobs')).json().items.find((j) => j.name === 'other').active_trace, other.id);
  await server.stopTrace(id);
  await server.createTrace({});
});
