// Each control action leaves one line: who, from where, what, with what result, refused or not.
import assert from 'node:assert/strict';
import test from 'node:test';
import { serve } from './lib/server.mjs';

const FIELD = /([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)/g;
const parse = (line) => Object.fromEntries([...line.matchAll(FIELD)].map(([, key, value]) => [key, value.startsWith('"') ? JSON.parse(value) : value]));
const audits = (text) => text.split('\n').filter((l) => /\bevent=audit\b/.test(l)).map(parse);

// The audit lines that come of what fn does, in their order; waits until there are n of them.
async function lines(server, n, fn) {
  const before = server.log.length;
  await fn();
  for (let i = 0; i < 3000 && audits(server.log.slice(before)).length < n; i++) await new Promise((r) => setTimeout(r, 20));
  return audits(server.log.slice(before)).map(({ peer, action, subject, status, problem }) => [peer, action, subject, Number(status), problem]);
}

test('what changes something is told, in the order in which it happened', async (t) => {
  const server = await serve(t);
  let id, producer;
  const seen = await lines(server, 10, async () => {
    await server.registerTypes(['ascend.KERNEL']);
    producer = (await server.expect('POST', '/producers', [201], { body: { name: 'rank0', rank: 0 } })).json().id;
    id = (await server.createTrace({ start: { when: 'manual' } })).id;
    for (const move of ['start', 'cancel']) await server.expect('POST', `/traces/${id}/${move}`, [202]);
    await server.expect('POST', `/traces/${id}/stop`, [409]);
    await server.waitFinal(id);
    await server.expect('DELETE', `/traces/${id}`, [204]);
    await server.expect('DELETE', `/producers/${producer}`, [204]);
    await server.problem('POST', '/traces/none/files', 404, 'not-found', { body: '{}' });
    await server.problem('POST', '/traces', 400, 'unknown-field', { body: { fitler: {} } });
  });
  const from = '127.0.0.1';
  assert.deepEqual(seen, [[from, 'registerTypes', 'ascend.KERNEL', 201, undefined], [from, 'registerProducer', producer, 201, undefined], [from, 'createTrace', id, 201, undefined],
    [from, 'startTrace', id, 202, undefined], [from, 'cancelTrace', id, 202, undefined], [from, 'stopTrace', id, 409, 'illegal-state'], [from, 'deleteTrace', id, 204, undefined],
    [from, 'deleteProducer', producer, 204, undefined], [from, 'postFile', 'none', 404, 'not-found'], [from, 'createTrace', undefined, 400, 'unknown-field']]);
});

test('what the server itself refuses is told like what the API refuses', async (t) => {
  const server = await serve(t);
  const send = (method, target, headers, body) => server.request(method, target, { headers, body, contract: false });
  const seen = await lines(server, 4, async () => {
    await send('POST', '/v1/traces/some-trace/stop', { origin: 'http://evil.example' }, {});
    await send('POST', '/types', { host: 'evil.example' }, { plugin: 'a', type_name: 'B' });
    await send('DELETE', '/traces/some-trace', { expect: 'miracles' });
    await send('GET', '/traces', { origin: 'http://evil.example' }); // reads are no actions
    await send('POST', '/types', {}, {});
  });
  assert.deepEqual(seen.map((l) => l.slice(1)), [['stopTrace', 'some-trace', 403, 'untrusted-origin'], ['registerTypes', undefined, 421, 'untrusted-host'], ['deleteTrace', 'some-trace', 417, 'expectation-failed'],
    ['registerTypes', undefined, 400, 'invalid-field']]);
});

test('a client cannot write lines of its own', async (t) => {
  const server = await serve(t);
  const name = 'x\ntime=now level=info event=audit peer=10.0.0.1 action=deleteTrace';
  const seen = await lines(server, 1, () => server.expect('POST', `/traces/${encodeURIComponent(name)}/stop`, [404]));
  assert.deepEqual(seen, [['127.0.0.1', 'stopTrace', name.slice(0, 60), 404, 'not-found']]);
});
