// A download describes itself, alone and merged.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf, slice, slices } from './lib/events.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { serve } from './lib/server.mjs';

async function twoRanks(t) {
  const server = await serve(t);
  await server.expect('POST', '/types', [201], { body: { plugin: 'ascend', type_name: 'KERNEL', description: 'a kernel on the chip', unit: 'ns' } });
  const { id } = await server.createTrace({ label: 'two "ranks"', metadata: { commit: 'abc' }, filter: { include: ['ascend.KERNEL', 'cpu_op'] } });
  for (const rank of [0, 1]) {
    const body = [...slices(5, `r${rank}`), slice('op', 3, 1, { cat: 'cpu_op', tid: 2 }), { ph: 's', id: 1, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 1 + rank }, { ph: 'f', bp: 'e', id: 1, cat: 'ac2g', name: 'ac2g', pid: 1, tid: 1, ts: 11 + rank }];
    await server.events(id, body, { rank, world_size: 2, host: `node${rank}` });
  }
  await server.stopTrace(id);
  return { server, id };
}

test('everything that a reader needs stands before the events', async (t) => {
  const { server, id } = await twoRanks(t);
  const r = await server.expect('GET', `/v1/traces/${id}/download`, [200]);
  const text = r.body.toString('utf8'), out = JSON.parse(text);
  assert.match(r.headers['content-disposition'], new RegExp(`attachment; filename="?[A-Za-z0-9._-]*${id}[A-Za-z0-9._-]*\\.json"?`));
  assert.match(r.headers['content-type'], /^application\/json/);
  assert.equal(Object.keys(out).at(-1), 'traceEvents');
  assert.deepEqual(out.customActivityTypes.map((c) => [c.id, c.name, c.description, c.unit]), [[154, 'ascend.KERNEL', 'a kernel on the chip', 'ns']]);
  assert.equal(out.customActivityTypes[0].hash, 0x221b083c);
  const told = JSON.stringify(out.traceplane);
  for (const word of [id, 'two \\"ranks\\"', 'abc', 'node0', 'node1', 'complete', 'cpu_op']) assert.ok(told.includes(word), `${word} is not in ${told}`);
  assert.ok(out.schemaVersion !== undefined && out.baseTimeNanoseconds !== undefined);
});

test('a counter has the unit of its type', async (t) => {
  const server = await serve(t);
  for (const [type_name, unit] of [['MEMORY', 'bytes'], ['LOAD', undefined]]) await server.expect('POST', '/types', [201], { body: { plugin: 'ascend', type_name, kind: 'counter', unit } });
  const { id } = await server.createTrace();
  const counter = (cat, name, ts) => ({ ph: 'C', cat, name, pid: 1, tid: 1, ts, args: { chip: 7, board: 9.5 } });
  await server.events(id, [counter('ascend.MEMORY', 'memory', 1), counter('ascend.LOAD', 'load', 2), counter('nobody.KNOWS', 'odd', 3), counter('ascend.MEMORY', 'memory', 4)]);
  await server.stopTrace(id);
  const judge = await TraceProcessor.load(await server.download(id, '?format=perfetto'));
  assert.deepEqual(await judge.errors(), []);
  const found = await judge.query('select name, unit from counter_track order by name');
  assert.deepEqual(found.map((r) => [r.name, r.unit]), [['load board', null], ['load chip', null], ['memory board', 'bytes'], ['memory chip', 'bytes'], ['odd board', null], ['odd chip', null]]);
});

test('in a merge every rank has processes and flows of its own', async (t) => {
  const { server, id } = await twoRanks(t);
  const out = await server.downloadChrome(id);
  const pidOf = (rank) => new Set(eventsOf(out).filter((e) => e.name.startsWith(`r${rank}-`)).map((e) => e.pid));
  assert.equal(pidOf(0).size, 1);
  assert.notDeepEqual([...pidOf(0)], [...pidOf(1)]);
  const labels = out.traceEvents.filter((e) => e.name === 'process_labels').map((e) => e.args.labels);
  for (const rank of [0, 1]) assert.ok(labels.some((l) => l.includes(`rank ${rank}`)), String(labels));
  assert.ok(out.traceEvents.some((e) => e.name === 'process_sort_index'));
  const flows = out.traceEvents.filter((e) => 'sf'.includes(e.ph));
  assert.equal(new Set(flows.map((e) => String(e.id))).size, 2);
  const alone = await server.downloadChrome(id, '?ranks=1');
  assert.deepEqual([...new Set(eventsOf(alone).map((e) => e.pid))], [1]);
  assert.equal(alone.distributedInfo.rank, 1);
});

test('slices of a trace go by rank, type and time', async (t) => {
  const { server, id } = await twoRanks(t);
  const get = async (query) => eventsOf(await server.downloadChrome(id, query)).filter((e) => e.ph === 'X');
  assert.equal((await get('')).length, 12);
  assert.equal((await get('?ranks=0')).length, 6);
  assert.equal((await get('?ranks=0,1')).length, 12);
  assert.equal((await get('?ranks=0&ranks=1')).length, 12);
  assert.deepEqual((await get('?types=cpu_op')).map((e) => e.name), ['op', 'op']);
  assert.equal((await get('?types=ascend.KERNEL&ranks=1')).length, 5);
  const out = await server.downloadChrome(id), base = BigInt(out.baseTimeNanoseconds);
  const at = (us) => base + BigInt(us) * 1000n;
  assert.deepEqual((await get(`?ranks=0&types=ascend.KERNEL&from=${at(8)}&to=${at(25)}`)).map((e) => e.name), ['r0-1', 'r0-2']);
  for (const [query, kind] of [['ranks=9', 'invalid-field'], ['types=ascend.KERNAL', 'unknown-type'], ['format=svg', 'invalid-field'], ['compress=br', 'invalid-field'], ['from=5&to=4', 'invalid-field'], ['from=x', 'invalid-parameter'], ['ranks=a', 'invalid-parameter']]) {
    const r = await server.request('GET', `/traces/${id}/download?${query}`);
    assert.equal(r.status, 400, query);
    assert.match(r.json().type, new RegExp(`:(${kind}|invalid-parameter|invalid-field)$`), query);
  }
});

test('an empty trace says why it is empty', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL', 'ascend.SYNC']);
  const why = async (request, events) => {
    const { id } = await server.createTrace(request);
    if (events) await server.events(id, events);
    const end = await server.stopTrace(id);
    const out = await server.downloadChrome(id);
    assert.deepEqual([end.outcome, eventsOf(out).length], ['empty', 0]);
    assert.ok(JSON.stringify(out.traceplane).includes(end.reason), end.reason);
    return end.reason;
  };
  assert.match(await why({}), /no producer/i);
  assert.match(await why({ filter: { include: ['ascend.SYNC'] } }, slices(3)), /filter/i);
});

test('a trace that is still recording can be downloaded', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  await server.events(id, slices(5, 'first'));
  const r = await server.expect('GET', `/traces/${id}/download`, [200], { headers: { range: 'bytes=0-9' } });
  assert.equal(r.headers.etag, undefined);
  assert.equal(eventsOf(r.json()).length, 5);
  assert.ok(JSON.stringify(r.json().traceplane).includes('recording'));
  await server.events(id, slices(5, 'second'));
  assert.equal(eventsOf(await server.downloadChrome(id)).length, 10);
  assert.ok((await server.download(id, '?format=perfetto')).length > 0);
  assert.equal((await server.stopTrace(id)).counts.stored, 10);
});
