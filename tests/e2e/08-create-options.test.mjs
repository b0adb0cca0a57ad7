// Idempotency, dry runs, requirements, lists.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Server, serve } from './lib/server.mjs';

const key = (k) => ({ headers: { 'idempotency-key': k } });

test('a key replays the first answer, also after a restart, and only for the same body', async (t) => {
  const server = await Server.start();
  let last = server;
  t.after(() => last.stop());
  const body = { job: 'train', label: 'one' };
  const first = await server.expect('POST', '/traces', [201], { body, ...key('k-1') });
  const again = await server.expect('POST', '/traces', [201], { body, ...key('k-1') });
  assert.equal(again.json().id, first.json().id);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  const p = await server.problem('POST', '/traces', 409, 'idempotency-mismatch', { body: { ...body, label: 'two' }, ...key('k-1') });
  assert.equal(p.trace_id, first.json().id);
  await server.stopTrace(first.json().id);
  await server.terminate();
  last = await Server.start({ dataDir: server.dataDir });
  last.ownsData = true;
  const later = await last.expect('POST', '/traces', [201], { body, ...key('k-1') });
  assert.equal(later.json().id, first.json().id);
  assert.equal(later.headers['idempotency-replayed'], 'true');
  const other = await last.expect('POST', '/traces', [201], { body, ...key('k-2') });
  assert.notEqual(other.json().id, first.json().id);
});

test('keys that are none are refused', async (t) => {
  const server = await serve(t);
  for (const bad of ['x'.repeat(256), 'a b', ' ']) await server.problem('POST', '/traces', 400, 'invalid-request', { body: {}, ...key(bad) });
  assert.equal((await server.get('/traces')).json().items.length, 0);
});

test('a dry run resolves and matches and makes nothing', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  await server.expect('POST', '/producers', [201], { body: { name: 'p', rank: 3 } });
  const dry = (await server.expect('POST', '/traces', [200], { body: { dry_run: true, filter: { include: ['KERNEL'] } } })).json();
  assert.equal(dry.dry_run, true);
  assert.equal(dry.id, undefined);
  assert.deepEqual(dry.types, [{ id: 154, name: 'ascend.KERNEL' }]);
  assert.deepEqual(dry.matched.map((m) => m.rank), [3]);
  assert.equal((await server.get('/traces')).json().items.length, 0);
  await server.expect('POST', '/types', [201], { body: { plugin: 'a', type_name: 'NEW' } });
});

test('requirements are any, all or a number', async (t) => {
  const server = await serve(t);
  const none = await server.createTrace({});
  assert.ok(none.warnings.length > 0, 'zero matched is a warning');
  await server.stopTrace(none.id);
  const p = await server.problem('POST', '/traces', 409, 'not-enough-producers', { body: { require: 2 } });
  assert.deepEqual([p.required, p.available], [2, 0]);
  await server.problem('POST', '/traces', 409, 'not-enough-producers', { body: { require: 'all', select: { ranks: [7] } } });
  for (const rank of [0, 1]) await server.expect('POST', '/producers', [201], { body: { name: `rank-${rank}`, rank, world_size: 2 } });
  const two = await server.createTrace({ require: 2 });
  assert.equal(two.matched.length, 2);
  assert.equal(two.require, 2);
  await server.expect('POST', `/traces/${two.id}/cancel`, [202]);
  await server.waitFinal(two.id);
  assert.equal((await server.createTrace({ require: 'all' })).require, 'all');
});

test('lists go by job, state and page, newest first', async (t) => {
  const server = await serve(t);
  const ids = [];
  for (let i = 0; i < 5; i++) {
    const trace = await server.createTrace({ job: i % 2 ? 'odd' : 'even' });
    ids.unshift(trace.id);
    if (i < 4) await server.stopTrace(trace.id);
  }
  const list = async (query) => (await server.expect('GET', `/traces?${query}`, [200])).json();
  assert.deepEqual((await list('')).items.map((x) => x.id), ids);
  assert.deepEqual((await list('job=odd')).items.map((x) => x.id), [ids[1], ids[3]]);
  assert.deepEqual((await list('state=recording')).items.map((x) => x.id), [ids[0]]);
  assert.deepEqual((await list('state=active')).items.map((x) => x.id), [ids[0]]);
  const first = await list('limit=2');
  const second = await list(`limit=2&cursor=${first.next_cursor}`);
  const third = await list(`limit=2&cursor=${second.next_cursor}`);
  assert.deepEqual([...first.items, ...second.items, ...third.items].map((x) => x.id), ids);
  assert.equal(third.next_cursor, null);
  await server.problem('GET', '/traces?state=sleeping', 400, 'invalid-field').catch(() => server.problem('GET', '/traces?state=sleeping', 400, 'invalid-parameter'));
});
