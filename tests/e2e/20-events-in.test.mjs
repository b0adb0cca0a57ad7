// Events in every form that is taken, plain and gzipped.
import assert from 'node:assert/strict';
import test from 'node:test';
import zlib from 'node:zlib';
import { namesOf, slice, slices } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

async function recording(t, options) {
  const server = await serve(t, options);
  await server.registerTypes(['ascend.KERNEL']);
  return { server, id: (await server.createTrace({})).id };
}
const send = (server, id, body, headers, ok = [200]) => server.expect('POST', `/traces/${id}/events`, ok, { body: Buffer.from(body), headers });

test('an object, an array and lines are the same events', async (t) => {
  const { server, id } = await recording(t);
  const forms = [
    [JSON.stringify({ traceEvents: [slice('a', 1, 1)] }), 'application/json'],
    [JSON.stringify([slice('b', 2, 1)]), 'application/json; charset=utf-8'],
    [`${JSON.stringify(slice('c', 3, 1))}\n${JSON.stringify(slice('d', 4, 1))}\n`, 'application/x-ndjson'],
    [`${JSON.stringify(slice('e', 5, 1))}\n\n${JSON.stringify(slice('f', 6, 1))}`, 'application/x-ndjson'],
    [JSON.stringify([slice('g', 7, 1)]), 'application/x-www-form-urlencoded'],
    [JSON.stringify([slice('h', 8, 1)]), undefined],
  ];
  for (const [body, type] of forms) await send(server, id, body, type && { 'content-type': type });
  await server.stopTrace(id);
  assert.deepEqual(namesOf(await server.downloadChrome(id)), [...'abcdefgh']);
});

test('a gzipped body is taken, in several members, too', async (t) => {
  const { server, id } = await recording(t);
  const text = Buffer.from(JSON.stringify(slices(1000)));
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const reply = (await send(server, id, Buffer.concat([zlib.gzipSync(text.subarray(0, 3000)), zlib.gzipSync(text.subarray(3000))]), headers)).json();
  assert.equal(reply.accepted, 1000);
  await server.problem('POST', `/traces/${id}/events`, 400, 'damaged-body', { body: zlib.gzipSync(text).subarray(0, 500), headers });
  await server.problem('POST', `/traces/${id}/events`, 400, 'damaged-body', { body: Buffer.from('no gzip'), headers });
  await server.problem('POST', `/traces/${id}/events`, 415, 'unsupported-encoding', { body: text, headers: { ...headers, 'content-encoding': 'br' } });
  const p = await server.problem('POST', `/traces/${id}/events`, 400, 'damaged-body', { body: zlib.gzipSync(text) });
  assert.match(p.detail, /Content-Encoding: gzip/);
  assert.equal((await server.stopTrace(id)).counts.stored, 1000);
});

test('what is no form of events is 415 and says what is', async (t) => {
  const { server, id } = await recording(t);
  for (const type of ['text/plain', 'multipart/form-data; boundary=x', 'application/xml'])
    await server.problem('POST', `/traces/${id}/events`, 415, 'unsupported-media-type', { body: Buffer.from('[]'), headers: { 'content-type': type } });
});

test('a damaged batch is refused with its offset and leaves nothing', async (t) => {
  const { server, id } = await recording(t);
  const good = JSON.stringify(slices(50));
  for (const bad of [good.slice(0, -10), good.replace('"k-25"', '"k-25'), `${good}]`, '[1 2]', 'null', ''])
    await server.problem('POST', `/traces/${id}/events`, 400, 'damaged-body', { body: Buffer.from(bad), headers: { 'content-type': 'application/json' } }).then((p) => {
      if (bad.includes('k-25')) assert.ok(p.offset > 0, JSON.stringify(p));
    });
  const end = await server.stopTrace(id);
  assert.deepEqual([end.outcome, end.counts.stored], ['empty', 0]);
});

test('what is no event is rejected by itself, and counted', async (t) => {
  const { server, id } = await recording(t);
  const reply = await server.events(id, [slice('good', 1, 1), { ph: 'X', cat: 'ascend.KERNEL', name: 'no ts' }, 5, { name: 'no ph', ts: 1 }, slice('also good', 2, 1)]);
  assert.equal(reply.posted, 5);
  assert.equal(reply.accepted, 2);
  assert.equal(reply.rejected, 3);
  assert.equal(reply.posted, reply.accepted + reply.filtered + reply.dropped);
  assert.ok(reply.first_rejection.length > 0);
  const end = await server.stopTrace(id);
  assert.equal(end.outcome, 'lossy');
  assert.equal(end.counts.emitted, end.counts.stored + end.counts.filtered + end.counts.dropped);
});

test('parameters say whose data it is', async (t) => {
  const { server, id } = await recording(t);
  const reply = await server.events(id, slices(1), { producer: 'worker', rank: 5, world_size: 8, host: 'node7', pid: 99 });
  assert.deepEqual([reply.producer, reply.rank, reply.stream], ['worker', 5, 1]);
  const [stream] = (await server.stopTrace(id)).streams;
  const { producer } = stream;
  assert.deepEqual([producer.name, producer.rank, producer.world_size, producer.host, producer.pid], ['worker', 5, 8, 'node7', 99]);
  for (const bad of ['rank=-1', 'rank=x', 'rank=1&rank=2', 'seq=-1', 'pid=1.5', 'world_size=0'])
    await server.problem('POST', `/traces/${id}/events?${bad}`, 400, 'invalid-parameter', { body: [] });
  const p = await server.problem('POST', `/traces/${id}/events?ranks=1`, 400, 'unknown-parameter', { body: [] });
  assert.match(p.detail, /rank/);
});

test('a batch without a base counts from that of its stream', async (t) => {
  const { server, id } = await recording(t);
  const base = '1795982590000000000';
  await send(server, id, `{"baseTimeNanoseconds":${base},"traceEvents":[${JSON.stringify(slice('a', 5, 1))}]}`);
  await server.kill();
  const again = await serve(t, { dataDir: server.dataDir });
  await again.events(id, [slice('b', 9, 1)]);
  assert.equal((await again.stopTrace(id)).outcome, 'complete');
  const text = (await again.download(id)).toString();
  assert.ok(text.includes(`"baseTimeNanoseconds": ${base}`), text.slice(0, 500));
  assert.deepEqual(JSON.parse(text).traceEvents.filter((e) => e.ph === 'X').map((e) => [e.name, e.ts]), [['a', 5], ['b', 9]]);
});
