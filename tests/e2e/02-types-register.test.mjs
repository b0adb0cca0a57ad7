// Registration: the ids of the RFC, all or none, and a collision that names the holder.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { SHARED, serve } from './lib/server.mjs';

const KERNEL = { plugin: 'ascend', type_name: 'KERNEL' };

test('a new type is 201, the same one again 200 with the same id', async (t) => {
  const server = await serve(t);
  const first = await server.expect('POST', '/types', [201], { body: { ...KERNEL, description: 'a kernel', kind: 'slice', unit: 'ns' } });
  const again = await server.expect('POST', '/v1/types', [200], { body: KERNEL });
  assert.equal(first.json().id, 154);
  assert.equal(first.json().created, true);
  assert.equal(first.json().hash, 0x221b083c);
  assert.equal(again.json().id, 154);
  assert.equal(again.json().created, false);
  assert.equal(again.json().description, 'a kernel');
});

test('a batch is registered as a whole or not at all', async (t) => {
  const server = await serve(t);
  const types = [{ plugin: 'ascend', type_name: 'SYNC' }, KERNEL, { plugin: 'ascend', type_name: 'REDUCE_SCATTER' }];
  const problem = await server.problem('POST', '/types', 409, 'id-collision', { body: { types } });
  assert.equal(problem.id, 154);
  assert.deepEqual(problem.holder, { id: 154, name: 'ascend.KERNEL' });
  const custom = await server.expect('GET', '/types?scope=custom', [200]);
  assert.deepEqual(custom.json().items, []);
  const done = await server.registerTypes(['ascend.SYNC', 'ascend.KERNEL']);
  assert.deepEqual(done.types.map((x) => x.id), [161, 154]);
});

test('the items of a batch may name its job, and must agree on it', async (t) => {
  const server = await serve(t);
  const item = (type_name, job) => ({ plugin: 'a', type_name, ...(job && { job }) });
  const jobs = async (body) => (await server.expect('POST', '/types', [201], { body })).json().types.map((x) => x.job);
  assert.deepEqual(await jobs({ types: [item('X', 'j'), item('Y', 'j')] }), ['j', 'j']);
  assert.deepEqual(await jobs({ job: 'k', types: [item('X'), item('Y', 'k')] }), ['k', 'k']);
  const differs = async (body) => (await server.problem('POST', '/types', 400, 'invalid-field', { body })).field;
  assert.equal(await differs({ types: [item('P', 'j'), item('Q')] }), 'types[1].job');
  assert.equal(await differs({ types: [item('P'), item('Q', 'j')] }), 'types[1].job');
  assert.equal(await differs({ job: 'k', types: [item('P', 'j'), item('Q')] }), 'types[1].job');
  for (const job of ['j', 'k', 'default']) {
    const names = (await server.get(`/types?scope=custom&job=${job}`)).json().items.map((x) => x.name);
    assert.deepEqual(names.sort(), job === 'default' ? [] : ['a.X', 'a.Y'], job);
  }
});

test('a collision is refused and names the holder', async (t) => {
  const server = await serve(t);
  await server.expect('POST', '/types', [201], { body: KERNEL });
  const problem = await server.problem('POST', '/types', 409, 'id-collision', { body: { plugin: 'ascend', type_name: 'REDUCE_SCATTER' } });
  assert.equal(problem.holder.name, 'ascend.KERNEL');
  await server.problem('GET', '/types/ascend.REDUCE_SCATTER', 404, 'not-found');
});

test('the probe policy gives a free id and says so', async (t) => {
  const server = await serve(t, { args: ['--on-collision', 'probe'] });
  await server.expect('POST', '/types', [201], { body: KERNEL });
  const other = (await server.expect('POST', '/types', [201], { body: { plugin: 'ascend', type_name: 'REDUCE_SCATTER' } })).json();
  assert.notEqual(other.id, 154);
  assert.ok(other.id >= 50 && other.id < 255);
  assert.equal(other.resolved, true);
  assert.equal((await server.get('/types/ascend.REDUCE_SCATTER')).json().id, other.id);
});

test('the known answers of the RFC hold', async (t) => {
  const file = path.join(SHARED, 'type_ids.json');
  if (!fs.existsSync(file)) return t.skip('no ../shared/type_ids.json beside the project');
  const server = await serve(t);
  for (const [i, known] of JSON.parse(fs.readFileSync(file, 'utf8')).entries()) {
    const body = { plugin: known.plugin, type_name: known.type_name, job: `job-${i}` };
    const r = await server.expect('POST', '/types', [201, 200], { body });
    assert.deepEqual([r.json().id, r.json().hash], [known.id, Number(known.hash)], `${known.plugin}.${known.type_name}`);
  }
});

test('names that are no names are refused, and the field is named', async (t) => {
  const server = await serve(t);
  const wrong = [[{ plugin: 'a.b', type_name: 'X' }, 'plugin'], [{ plugin: '', type_name: 'X' }, 'plugin'], [{ plugin: 'a' }, 'type_name'],
    [{ plugin: 'a', type_name: 'X', kind: 'span' }, 'kind'], [{ types: [KERNEL, { plugin: 'a b\n', type_name: 'X' }] }, 'types[1].plugin']];
  for (const [body, field] of wrong) {
    const p = await server.problem('POST', '/types', 400, 'invalid-field', { body });
    assert.equal(p.field, field, JSON.stringify(body));
  }
});
