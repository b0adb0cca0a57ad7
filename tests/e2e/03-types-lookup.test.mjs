// Finding types: by id, by name, by scope, page by page, in one job or another.
import assert from 'node:assert/strict';
import test from 'node:test';
import { serve } from './lib/server.mjs';

test('a type is found by its id, its full name and its bare name', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  for (const key of ['154', 'ascend.KERNEL', 'KERNEL']) assert.equal((await server.expect('GET', `/types/${key}`, [200])).json().name, 'ascend.KERNEL');
  const kernel = (await server.expect('GET', '/types/kernel', [200])).json();
  assert.equal(kernel.scope, 'static');
  assert.ok(kernel.id < 50);
});

test('a bare name that two plugins share is ambiguous, and both are listed', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.SYNC', 'other.SYNC']);
  const p = await server.problem('GET', '/types/SYNC', 409, 'ambiguous-name');
  assert.deepEqual(p.candidates.sort(), ['ascend.SYNC', 'other.SYNC']);
  assert.equal((await server.expect('GET', '/types/ascend.SYNC', [200])).json().plugin, 'ascend');
});

test('an unknown name is 404 with the nearest names', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const p = await server.problem('GET', '/types/ascend.KERNAL', 404, 'not-found');
  assert.ok(p.nearest.includes('ascend.KERNEL'), JSON.stringify(p));
  await server.problem('GET', '/types/200', 404, 'not-found');
});

test('lists have scopes and pages', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL', 'ascend.SYNC', 'ascend.MEMCPY']);
  const list = async (query) => (await server.expect('GET', `/types?${query}`, [200])).json();
  const all = (await list('')).items, fixed = (await list('scope=static')).items, custom = (await list('scope=custom')).items;
  assert.equal(fixed.length, 29);
  assert.deepEqual(custom.map((x) => x.id), [126, 154, 161]);
  assert.equal(all.length, 32);
  const ids = [];
  for (let cursor = null, i = 0; i === 0 || cursor !== null; i++) {
    const page = await list(`limit=5${cursor === null ? '' : `&cursor=${cursor}`}`);
    assert.ok(page.items.length <= 5);
    ids.push(...page.items.map((x) => x.id));
    cursor = page.next_cursor;
  }
  assert.deepEqual(ids, all.map((x) => x.id));
  await server.problem('GET', '/types?scope=mine', 400, 'invalid-parameter');
  await server.problem('GET', '/types?limit=0', 400, 'invalid-parameter');
});

test('each job has a registry of its own', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL'], 'one');
  const other = await server.expect('POST', '/types', [201], { body: { plugin: 'ascend', type_name: 'REDUCE_SCATTER', job: 'two' } });
  assert.equal(other.json().id, 154);
  assert.equal((await server.get('/types/154?job=one')).json().name, 'ascend.KERNEL');
  assert.equal((await server.get('/types/154?job=two')).json().name, 'ascend.REDUCE_SCATTER');
  await server.problem('GET', '/types/154', 404, 'not-found');
  const jobs = (await server.expect('GET', '/jobs', [200])).json().items.map((j) => [j.name, j.types]);
  assert.deepEqual(jobs.filter(([, n]) => n > 0).sort(), [['one', 1], ['two', 1]]);
  const page = (await server.expect('GET', '/jobs?limit=1', [200])).json();
  assert.equal(page.items.length, 1);
  assert.equal((await server.get(`/jobs?limit=1&cursor=${page.next_cursor}`)).json().items.length, 1);
});
