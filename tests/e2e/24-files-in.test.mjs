// Whole files: plain, gzipped, damaged, bombs.
import assert from 'node:assert/strict';
import test from 'node:test';
import zlib from 'node:zlib';
import { namesOf, slices } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

const file = (n) => Buffer.from(JSON.stringify({ schemaVersion: 1, distributedInfo: { rank: 1, world_size: 2 }, traceEvents: slices(n) }));

async function recording(t, options) {
  const server = await serve(t, options);
  await server.registerTypes(['ascend.KERNEL']);
  return { server, id: (await server.createTrace({})).id };
}

test('a trace that has ended takes no file', async (t) => {
  const { server, id } = await recording(t);
  await server.stopTrace(id);
  await server.problem('POST', `/traces/${id}/files?rank=1`, 409, 'illegal-state', { body: file(1) });
});

test('a file is one stream, gzipped in any number of members or not', async (t) => {
  const { server, id } = await recording(t);
  const text = file(100);
  const bodies = [text, zlib.gzipSync(text), Buffer.concat([zlib.gzipSync(text.subarray(0, 777)), zlib.gzipSync(text.subarray(777))])];
  for (const [rank, body] of bodies.entries()) {
    const reply = (await server.expect('POST', `/traces/${id}/files?rank=${rank}&name=r${rank}.json.gz`, [201], { body })).json();
    assert.deepEqual([reply.accepted, reply.rank, reply.truncated], [100, rank, false]);
  }
  const end = await server.stopTrace(id);
  assert.deepEqual(end.streams.map((s) => [s.file, s.counts.stored, s.producer.rank]), [['r0.json.gz', 100, 0], ['r1.json.gz', 100, 1], ['r2.json.gz', 100, 2]]);
});

test('of a file that ends early what can be read is kept, and the damage told', async (t) => {
  const { server, id } = await recording(t);
  const text = file(100);
  const cut = (await server.expect('POST', `/traces/${id}/files?rank=0`, [201], { body: text.subarray(0, text.length - 200) })).json();
  assert.equal(cut.truncated, true);
  assert.ok(cut.accepted > 90 && cut.accepted < 100 && cut.damage.length > 0, JSON.stringify(cut));
  const zipped = zlib.gzipSync(text);
  const half = (await server.expect('POST', `/traces/${id}/files?rank=1`, [201], { body: zipped.subarray(0, zipped.length - 20) })).json();
  assert.equal(half.truncated, true);
  const end = await server.stopTrace(id);
  assert.equal(end.outcome, 'partial', end.reason);
  assert.equal(namesOf(await server.downloadChrome(id, '?ranks=0')).length, cut.accepted);
});

test('a bomb is refused and nothing of it stays', async (t) => {
  const { server, id } = await recording(t, { args: ['--max-inflate-ratio', '200'] });
  const bomb = zlib.gzipSync(Buffer.concat([Buffer.from(`{"traceEvents":[${JSON.stringify(slices(1)[0])},`), Buffer.alloc(48 << 20, ' ')]));
  const p = await server.problem('POST', `/traces/${id}/files`, 413, 'body-too-large', { body: bomb });
  assert.equal(p.limit, 'max-inflate-ratio');
  assert.equal((await server.stopTrace(id)).counts.stored, 0);
});

test('a file that is sent again with its number is there once, also after a kill', async (t) => {
  const { server, id } = await recording(t);
  const post = async (s, query, ranked = true) => (await s.expect('POST', `/traces/${id}/files?name=a.json${query}`, [201], { body: ranked ? file(10) : JSON.stringify(slices(10)) })).json();
  const told = (reply) => [reply.stream, reply.duplicate, reply.accepted];
  assert.deepEqual(told(await post(server, '&seq=7')), [1, false, 10]);
  assert.deepEqual(told(await post(server, '&seq=7')), [1, true, 10]);
  const both = await Promise.all([post(server, '&rank=3&seq=1', false), post(server, '&rank=3&seq=1', false)]);
  assert.deepEqual(both.map((r) => r.stream), [2, 2]);
  assert.equal(both.filter((r) => r.duplicate).length, 1);
  await server.kill();
  const again = await serve(t, { dataDir: server.dataDir });
  assert.deepEqual(told(await post(again, '&seq=7')), [1, true, 10]);
  assert.deepEqual(told(await post(again, '&seq=8')), [3, false, 10]);
  assert.deepEqual(told(await post(again, '')), [4, false, 10]);
  assert.deepEqual(told(await post(again, '')), [5, false, 10]);
  const reply = (await again.expect('POST', `/traces/${id}/files?name=b.json&seq=7`, [201], { body: file(10) })).json();
  assert.deepEqual(told(reply), [6, false, 10]);
  assert.deepEqual([(await again.stopTrace(id)).counts.stored, 60], [60, 60]);
});

test('a name of a path stays a name', async (t) => {
  const { server, id } = await recording(t);
  await server.expect('POST', `/traces/${id}/files?name=${encodeURIComponent('../../../etc/passwd')}`, [201], { body: file(1) });
  const end = await server.stopTrace(id);
  assert.ok(!/\//.test(end.streams[0].file), end.streams[0].file);
});
