// Control bodies that are wrong: each is refused by name and changes nothing.
import assert from 'node:assert/strict';
import test from 'node:test';
import { serve } from './lib/server.mjs';

const KERNEL = '{"plugin":"ascend","type_name":"KERNEL"';
const json = (text) => ({ body: Buffer.from(text, 'latin1'), headers: { 'content-type': 'application/json' } });

test('what is no JSON is refused with the place', async (t) => {
  const server = await serve(t);
  const bad = ['{', '{}}', '[]', 'null', '"x"', `${KERNEL},}`, `${KERNEL}`, `${KERNEL},"job":"a\u0001"}`, `${KERNEL},"job":"\\x"}`, `${KERNEL},"job":NaN}`,
    `${KERNEL},"job":01}`, `${KERNEL},"plugin":"twice"}`, `${KERNEL}}garbage`, '{"plugin":"\\ud800","type_name":"X"}', '{"plugin":"a\xff","type_name":"X"}', '\x00', '{/* */}',
    '['.repeat(100000), `{"metadata":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}`];
  for (const text of bad) {
    const p = await server.problem('POST', '/types', 400, 'invalid-json', json(text));
    assert.ok(p.detail.length > 10, text.slice(0, 80));
  }
  assert.equal((await server.get('/types?scope=custom')).json().items.length, 0);
});

test('wrong types and ranges name their field', async (t) => {
  const server = await serve(t);
  const bad = [[{ job: 5 }, 'job'], [{ job: '../x' }, 'job'], [{ label: [] }, 'label'], [{ filter: 'x' }, 'filter'], [{ filter: { include: 'x' } }, 'filter.include'],
    [{ filter: { include: [5] } }, 'filter.include[0]'], [{ filter: { min_duration_ns: -1 } }, 'filter.min_duration_ns'], [{ filter: { min_duration_ns: 1.5 } }, 'filter.min_duration_ns'],
    [{ select: { ranks: [-1] } }, 'select.ranks[0]'], [{ select: { ranks: [4294967296] } }, 'select.ranks[0]'], [{ start: { when: 'soon' } }, 'start.when'],
    [{ start: { at: 'yesterday' } }, 'start.at'], [{ start: {} }, 'start'], [{ start: { when: 'now', step: 1 } }, 'start'], [{ stop: { duration_ms: 0 } }, 'stop.duration_ms'],
    [{ stop: { max_bytes: 1e300 } }, 'stop.max_bytes'], [{ require: 'some' }, 'require'], [{ require: -1 }, 'require'], [{ dry_run: 1 }, 'dry_run'], [{ metadata: [] }, 'metadata'], [{ job: null }, 'job']];
  for (const [body, field] of bad) assert.equal((await server.problem('POST', '/traces', 400, 'invalid-field', { body })).field, field, JSON.stringify(body));
  for (const text of ['{"stop":{"duration_ms":99999999999999999999}}', '{"stop":{"duration_ms":18446744073709551616}}', '{"stop":{"duration_ms":-9223372036854775809}}'])
    assert.equal((await server.problem('POST', '/traces', 400, 'invalid-field', json(text))).field, 'stop.duration_ms', text);
  assert.equal((await server.get('/traces')).json().items.length, 0);
});

test('unknown fields are refused by name, with the nearest', async (t) => {
  const server = await serve(t);
  const bad = [['/traces', { fliter: {} }, 'fliter', 'filter'], ['/traces', { filter: { includes: [] } }, 'filter.includes', 'include'], ['/traces', { filter: { names: { inclued: [] } } }, 'filter.names.inclued', 'include'],
    ['/types', { plugin: 'a', type_name: 'B', descripton: '' }, 'descripton', 'description'], ['/types', { types: [{ plugin: 'a', type_name: 'B', jbo: 'x' }] }, 'types[0].jbo', 'job'], ['/producers', { nmae: 'x' }, 'nmae', 'name']];
  for (const [target, body, field, near] of bad) {
    const p = await server.problem('POST', target, 400, 'unknown-field', { body });
    assert.equal(p.field, field);
    assert.ok(p.detail.includes(near), p.detail);
  }
});

test('NUL in names is refused wherever it can stand', async (t) => {
  const server = await serve(t);
  const nul = 'a\u0000b';
  for (const [target, body] of [['/types', { plugin: nul, type_name: 'X' }], ['/types', { plugin: 'a', type_name: nul }], ['/traces', { job: nul }], ['/traces', { label: nul }], ['/traces', { filter: { include: [nul] } }], ['/producers', { name: nul }]])
    await server.problem('POST', target, 400, 'invalid-field', { body });
  for (const target of ['/types/a%00b', '/traces/%00', '/traces?job=%00', '/types?job=a%00']) assert.equal((await server.request('GET', target)).status, 400, target);
});

test('a control body may be gzipped; a wrong content type is 415', async (t) => {
  const server = await serve(t);
  const { gzipSync } = await import('node:zlib');
  const text = `${KERNEL}}`;
  await server.expect('POST', '/types', [201], { body: gzipSync(text), headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } });
  for (const type of ['text/plain', 'multipart/form-data; boundary=b', 'application/xml', 'application/jsonx'])
    await server.problem('POST', '/types', 415, 'unsupported-media-type', { body: Buffer.from(text), headers: { 'content-type': type } });
  await server.problem('POST', '/types', 415, 'unsupported-encoding', { body: Buffer.from(text), headers: { 'content-encoding': 'br' } });
  await server.expect('POST', '/types', [400], { body: Buffer.from('no gzip'), headers: { 'content-encoding': 'gzip' } });
  await server.problem('GET', '/types?nonsense=1', 400, 'unknown-parameter');
});
