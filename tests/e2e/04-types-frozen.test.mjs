// From prepare to stop the registry of a job is frozen: the RFC's {id: 0}, with a reason.
import assert from 'node:assert/strict';
import test from 'node:test';
import { serve } from './lib/server.mjs';

const body = (type_name, job) => ({ body: { plugin: 'ascend', type_name, ...(job && { job }) } });

test('while a trace is active new types get id 0 and known ones their id', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  for (const start of [{ when: 'manual' }, { when: 'now' }]) {
    const trace = await server.createTrace({ start });
    const p = await server.problem('POST', '/types', 409, 'registry-frozen', body('SYNC'));
    assert.equal(p.id, 0);
    assert.equal(p.trace_id, trace.id);
    assert.equal((await server.expect('POST', '/types', [200], body('KERNEL'))).json().id, 154);
    await server.problem('POST', '/types', 409, 'registry-frozen', { body: { types: [{ plugin: 'ascend', type_name: 'KERNEL' }, { plugin: 'ascend', type_name: 'SYNC' }] } });
    assert.equal((await server.expect('POST', '/types', [201], body(`SYNC`, `other-${start.when}`))).json().id, 161);
    await server.expect('POST', `/traces/${trace.id}/cancel`, [202]);
    await server.waitFinal(trace.id);
  }
  assert.equal((await server.expect('POST', '/types', [201], body('SYNC'))).json().id, 161);
});

test('a refused type is logged, in one line', async (t) => {
  const server = await serve(t);
  await server.createTrace({});
  const before = server.log.length;
  await server.problem('POST', '/types', 409, 'registry-frozen', body('SYNC'));
  for (let i = 0; i < 3000 && !/SYNC/.test(server.log.slice(before)); i++) await new Promise((r) => setTimeout(r, 20));
  assert.equal(server.log.slice(before).split('\n').filter((l) => /SYNC/.test(l) && /frozen/i.test(l)).length, 1, server.log);
});
