// Producers: who they are, and why one takes part in a trace or does not.
import assert from 'node:assert/strict';
import test from 'node:test';
import { serve } from './lib/server.mjs';

const add = async (server, body) => (await server.expect('POST', '/producers', [201], { body })).json();

test('a producer is registered, listed, got and deleted', async (t) => {
  const server = await serve(t);
  const body = { name: 'trainer', kind: 'native', rank: 3, world_size: 8, host: 'node1', pid: 77, backend: 'ascend', device: 'npu:3', capabilities: { step: true } };
  const made = await add(server, body);
  for (const [k, v] of Object.entries(body)) assert.deepEqual(made[k], v, k);
  const again = await server.expect('POST', '/producers', [200], { body });
  assert.equal(again.json().id, made.id);
  assert.equal((await server.expect('GET', `/producers/${made.id}`, [200])).json().name, 'trainer');
  await add(server, { name: 'other', job: 'two' });
  assert.deepEqual((await server.expect('GET', '/producers?job=default', [200])).json().items.map((p) => p.id), [made.id]);
  const page = (await server.expect('GET', '/producers?limit=1', [200])).json();
  assert.equal((await server.get(`/producers?limit=1&cursor=${page.next_cursor}`)).json().items.length, 1);
  await server.expect('DELETE', `/producers/${made.id}`, [204]);
  await server.problem('GET', `/producers/${made.id}`, 404, 'not-found');
  await server.problem('DELETE', `/producers/${made.id}`, 404, 'not-found');
  await server.problem('POST', `/producers/${made.id}/sync`, 404, 'not-found', { body: { wait_ms: 0 } });
});

test('who is selected is matched, and the others are told why not', async (t) => {
  const server = await serve(t);
  for (const rank of [0, 1, 2]) await add(server, { name: `rank-${rank}`, rank, host: rank < 2 ? 'a' : 'b' });
  const select = { ranks: [0, 2], hosts: ['a'] };
  const trace = await server.createTrace({ select });
  assert.deepEqual(trace.select, select);
  assert.deepEqual(trace.matched.map((m) => m.name), ['rank-0']);
  const reasons = Object.fromEntries(trace.unmatched.map((m) => [m.name, m.reason]));
  assert.match(reasons['rank-1'], /rank/);
  assert.match(reasons['rank-2'], /host/);
});

test('a producer that comes late joins, and one that leaves makes the trace partial', async (t) => {
  const server = await serve(t, { args: ['--max-trace-stopping-ms', '500'] });
  await server.registerTypes(['ascend.KERNEL']);
  const trace = await server.createTrace({});
  const late = await add(server, { name: 'late', rank: 1 });
  const now = (await server.get(`/traces/${trace.id}`)).json();
  assert.deepEqual(now.matched.map((m) => m.name), ['late']);
  await server.expect('POST', `/producers/${late.id}/sync`, [200], { body: { wait_ms: 0 } });
  await server.events(trace.id, [{ ph: 'X', cat: 'ascend.KERNEL', name: 'k', pid: 1, tid: 1, ts: 1, dur: 1 }], { rank: 0 });
  await server.expect('DELETE', `/producers/${late.id}`, [204]);
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'partial', JSON.stringify(end.matched));
  assert.match(end.reason, /late|rank-1|1 producer/);
});
