// Limits of what the service keeps: each is set small and exceeded; and no limit is without a scenario.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import test from 'node:test';
import { slices } from './lib/events.mjs';
import { allLimits, assertNames, limited } from './lib/limits.mjs';
import { watch } from './lib/watch.mjs';

const post = (server, target, body, headers) => server.request('POST', target, { body, headers });

test('every limit has a scenario that exceeds it', () => {
  const source = fs.readdirSync('.').filter((f) => /^7\d-limits/.test(f)).map((f) => fs.readFileSync(f, 'utf8')).join('');
  const names = Object.keys(allLimits());
  assert.ok(names.length >= 39, `--help lists ${names.length}`);
  assert.deepEqual(names.filter((n) => !new RegExp(`'${n}['\\s:]`).test(source)), []);
});

test('max-label-bytes', async (t) => {
  const server = await limited(t, 'max-label-bytes', 16);
  assertNames(await post(server, '/traces', { label: 'x'.repeat(17) }), 'max-label-bytes', 16);
  assertNames(await post(server, '/producers', { host: 'x'.repeat(17) }), 'max-label-bytes', 16);
  await server.createTrace({ label: 'x'.repeat(16) });
});

test('max-metadata-bytes', async (t) => {
  const server = await limited(t, 'max-metadata-bytes', 256);
  assertNames(await post(server, '/traces', { metadata: { a: 'x'.repeat(300) } }), 'max-metadata-bytes', 256);
  await server.createTrace({ metadata: { a: 'x'.repeat(200) } });
});

test('max-trace-duration-ms', async (t) => {
  const server = await limited(t, 'max-trace-duration-ms', 300);
  const trace = await server.createTrace({ stop: { duration_ms: 100000 } });
  assert.deepEqual([trace.stop.duration_ms, trace.stop.duration_capped], [300, true]);
  const end = await server.waitFinal(trace.id);
  assert.match(end.history.find((h) => h.state === 'stopping').cause, /duration/);
});

test('max-trace-prepared-ms', async (t) => {
  const server = await limited(t, 'max-trace-prepared-ms', 200);
  const end = await server.waitFinal((await server.createTrace({ start: { when: 'manual' } })).id);
  assert.equal(end.state, 'failed');
});

test('max-trace-stopping-ms', async (t) => {
  const server = await limited(t, 'max-trace-stopping-ms', 300);
  const producer = (await server.expect('POST', '/producers', [201], { body: { name: 'mute', rank: 0 } })).json();
  const sync = (body) => server.expect('POST', `/producers/${producer.id}/sync`, [200], { body: { wait_ms: 0, ...body } });
  const { id } = await server.createTrace({});
  await server.events(id, slices(3), { rank: 1 });
  await sync({});
  await sync({ acks: [{ trace_id: id, command: 'prepare' }] });
  await sync({ acks: [{ trace_id: id, command: 'start' }] });
  const started = Date.now();
  const end = await server.stopTrace(id);
  assert.ok(Date.now() - started >= 250, 'it waits for the producer');
  assert.deepEqual([end.state, end.outcome], ['complete', 'partial']);
  assert.match(end.reason, /mute/);
});

test('max-trace-arming-ms: a producer that does not arm keeps the others waiting for so long only', async (t) => {
  const server = await limited(t, 'max-trace-arming-ms', 300);
  const producer = (await server.expect('POST', '/producers', [201], { body: { name: 'mute', rank: 0 } })).json();
  await server.expect('POST', `/producers/${producer.id}/sync`, [200], { body: { wait_ms: 0 } });
  const { id } = await server.createTrace({ require: 'all' });
  let now;
  for (let i = 0; i < 300 && now?.state !== 'recording'; i++) {
    await new Promise((r) => setTimeout(r, 20));
    now = (await server.get(`/traces/${id}`)).json();
  }
  assert.equal(now.state, 'recording', JSON.stringify(now.history));
  assert.notEqual(now.matched[0].state, 'recording');
});

test('max-producer-silence-ms', async (t) => {
  const server = await limited(t, 'max-producer-silence-ms', 1000);
  const { id } = (await server.expect('POST', '/producers', [201], { body: { name: 'silent', rank: 0 } })).json();
  await server.expect('POST', `/producers/${id}/sync`, [200], { body: { wait_ms: 0 } });
  let state;
  for (let i = 0; i < 200 && state !== 'stale'; i++) {
    await new Promise((r) => setTimeout(r, 50));
    [{ state }] = (await server.get('/producers')).json().items;
  }
  assert.equal(state, 'stale');
  const trace = await server.createTrace({});
  assert.deepEqual(trace.matched, []);
  assert.match(trace.unmatched[0].reason, /stale/);
});

test('max-live-downloads', async (t) => {
  const server = await limited(t, 'max-live-downloads', 1, { more: ['--seal-threads', '16'] });
  server.agent = new http.Agent({ maxSockets: 32 });
  const { id } = await server.createTrace({});
  for (let i = 0; i < 4; i++) await server.events(id, slices(2000, `batch${i}`));
  let refused;
  for (let round = 0; round < 20 && !refused; round++)
    refused = (await Promise.all(Array.from({ length: 16 }, () => server.request('GET', `/traces/${id}/download`)))).find((r) => r.status !== 200);
  assertNames(refused, 'max-live-downloads', 1);
});

test('max-idempotency-ms', async (t) => {
  const server = await limited(t, 'max-idempotency-ms', 1000);
  const create = (key) => post(server, '/traces', {}, { 'idempotency-key': key });
  let n = 0, first, again, asked;
  do { // until the second comes in time
    if (first) await server.stopTrace(first.json().id);
    asked = Date.now();
    first = await create(`k${++n}`);
    again = await create(`k${n}`);
  } while (Date.now() - asked >= 1000 && n < 20);
  const { id } = first.json();
  assert.deepEqual([first.status, again.status, again.json().id], [201, 201, id]);
  await server.stopTrace(id);
  await new Promise((r) => setTimeout(r, 1100));
  assert.notEqual((await create(`k${n}`)).json().id, id);
});

test('max-active-traces', async (t) => {
  const server = await limited(t, 'max-active-traces', 2);
  const one = await server.createTrace({ job: 'a' });
  await server.createTrace({ job: 'b' });
  assertNames(await post(server, '/traces', { job: 'c' }), 'max-active-traces', 2);
  await server.stopTrace(one.id);
  await server.createTrace({ job: 'c' });
});

test('max-stored-traces', async (t) => {
  const server = await limited(t, 'max-stored-traces', 2);
  const one = await server.createTrace({});
  await server.stopTrace(one.id);
  await server.stopTrace((await server.createTrace({})).id);
  assertNames(await post(server, '/traces', {}), 'max-stored-traces', 2);
  await server.expect('DELETE', `/traces/${one.id}`, [204]);
  await server.createTrace({});
});

test('max-jobs', async (t) => {
  const server = await limited(t, 'max-jobs', 2);
  await server.createTrace({ job: 'second' });
  assertNames(await post(server, '/traces', { job: 'third' }), 'max-jobs', 2);
  assertNames(await post(server, '/types', { plugin: 'a', type_name: 'B', job: 'third' }), 'max-jobs', 2);
  assertNames(await post(server, '/producers', { job: 'third' }), 'max-jobs', 2);
});

test('max-types-per-job', async (t) => {
  const server = await limited(t, 'max-types-per-job', 2);
  await server.registerTypes(['ascend.SYNC']);
  assertNames(await post(server, '/types', { plugin: 'ascend', type_name: 'MEMCPY' }), 'max-types-per-job', 2);
  await server.expect('POST', '/types', [200], { body: { plugin: 'ascend', type_name: 'SYNC' } });
});

test('max-types-per-request', async (t) => {
  const server = await limited(t, 'max-types-per-request', 2, { types: false });
  const types = ['A', 'B', 'C'].map((type_name) => ({ plugin: 'p', type_name }));
  assertNames(await post(server, '/types', { types }), 'max-types-per-request', 2);
  assert.equal((await server.get('/types?scope=custom')).json().items.length, 0);
});

test('max-producers-per-job', async (t) => {
  const server = await limited(t, 'max-producers-per-job', 1);
  await server.expect('POST', '/producers', [201], { body: { name: 'a' } });
  assertNames(await post(server, '/producers', { name: 'b' }), 'max-producers-per-job', 1);
  await server.expect('POST', '/producers', [200], { body: { name: 'a' } });
});

test('max-filter-entries', async (t) => {
  const server = await limited(t, 'max-filter-entries', 2);
  for (const filter of [{ include: ['KERNEL', 'KERNEL', 'KERNEL'] }, { exclude: ['a*', 'b*', 'c*'] }, { names: { include: ['a', 'b', 'c'] } }, { names: { exclude: ['a', 'b', 'c'] } }])
    assertNames(await post(server, '/traces', { filter }), 'max-filter-entries', 2);
});

test('max-filter-entry-bytes', async (t) => {
  const server = await limited(t, 'max-filter-entry-bytes', 16);
  for (const filter of [{ include: ['a'.repeat(17)] }, { names: { include: ['a'.repeat(17)] } }]) assertNames(await post(server, '/traces', { filter }), 'max-filter-entry-bytes', 16);
});

test('max-select-entries', async (t) => {
  const server = await limited(t, 'max-select-entries', 2);
  for (const select of [{ ranks: [1, 2, 3] }, { hosts: ['a', 'b', 'c'] }, { producers: ['a', 'b', 'c'] }]) assertNames(await post(server, '/traces', { select }), 'max-select-entries', 2);
});

test('max-watchers', async (t) => {
  const server = await limited(t, 'max-watchers', 2);
  const { id } = await server.createTrace({});
  const watches = [await watch(server, id), await watch(server, id)];
  assertNames(await server.request('GET', `/traces/${id}/watch`), 'max-watchers', 2);
  watches[0].close();
  let again;
  for (let i = 0; i < 1000 && again?.status !== 200; i++) {
    again = await watch(server, id);
    if (again.status !== 200) await new Promise((r) => setTimeout(r, 20));
  }
  assert.equal(again.status, 200);
  for (const w of [watches[1], again]) w.close();
});

test('max-idempotency-keys', async (t) => {
  const server = await limited(t, 'max-idempotency-keys', 2);
  for (const k of ['a', 'b']) await server.stopTrace((await server.expect('POST', '/traces', [201], { body: {}, headers: { 'idempotency-key': k } })).json().id);
  const r = await post(server, '/traces', {}, { 'idempotency-key': 'c' });
  if (r.status !== 201) assertNames(r, 'max-idempotency-keys', 2);
});
