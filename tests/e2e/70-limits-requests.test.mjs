// Limits of requests and bodies: each is set small and exceeded.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import test from 'node:test';
import zlib from 'node:zlib';
import { slice, slices } from './lib/events.mjs';
import { assertNames, limited } from './lib/limits.mjs';
import { raw, request } from './lib/raw.mjs';

const text = (n) => 'x'.repeat(n);
const file = (n) => Buffer.from(JSON.stringify({ traceEvents: slices(n) }));

test('max-body-bytes', async (t) => {
  const server = await limited(t, 'max-body-bytes', 1024);
  const producer = (await server.expect('POST', '/producers', [201], { body: {} })).json();
  for (const target of ['/traces', '/types', '/producers', `/producers/${producer.id}/sync`]) {
    const r = await server.request('POST', target, { body: { label: text(1500) } });
    assert.equal(r.status, 413, target);
    assertNames(r, 'max-body-bytes', 1024);
  }
  assertNames(await server.request('POST', '/traces', { body: zlib.gzipSync(JSON.stringify({ label: text(9000) })), headers: { 'content-encoding': 'gzip' } }), 'max-body-bytes', 1024);
  const chunked = request('POST', '/traces', ['Host: localhost', 'Transfer-Encoding: chunked'], `${(2000).toString(16)}\r\n${JSON.stringify({ label: text(1988) })}\r\n0\r\n\r\n`);
  assert.equal((await raw(server.port, chunked)).replies[0].status, 413);
  await server.createTrace({ label: text(200) });
});

test('max-events-body-bytes', async (t) => {
  const server = await limited(t, 'max-events-body-bytes', 2048);
  const { id } = await server.createTrace({});
  const r = await server.request('POST', `/traces/${id}/events`, { body: file(100) });
  assert.equal(r.status, 413);
  assertNames(r, 'max-events-body-bytes', 2048);
  const zipped = await server.request('POST', `/traces/${id}/events`, { body: zlib.gzipSync(file(100)), headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' } });
  assert.equal(zipped.status, 413, 'the limit holds after decompression, too');
  assert.equal((await server.stopTrace(id)).counts.stored, 0);
});

test('max-file-bytes', async (t) => {
  const server = await limited(t, 'max-file-bytes', 2048);
  const { id } = await server.createTrace({});
  const r = await server.request('POST', `/traces/${id}/files`, { body: file(100) });
  assert.equal(r.status, 413);
  assertNames(r, 'max-file-bytes', 2048);
  await server.expect('POST', `/traces/${id}/files`, [201], { body: file(3) });
  assert.equal((await server.stopTrace(id)).counts.stored, 3);
});

test('max-file-inflated-bytes', async (t) => {
  const server = await limited(t, 'max-file-inflated-bytes', 4096);
  const { id } = await server.createTrace({});
  const r = await server.request('POST', `/traces/${id}/files`, { body: zlib.gzipSync(file(300)) });
  assert.equal(r.status, 413);
  assertNames(r, 'max-file-inflated-bytes', 4096);
  assert.equal((await server.stopTrace(id)).counts.stored, 0);
});

test('max-inflate-ratio', async (t) => {
  const server = await limited(t, 'max-inflate-ratio', 100);
  const { id } = await server.createTrace({});
  // What a small body becomes is no bomb: the ratio counts from 16 MiB on.
  const bomb = zlib.gzipSync(Buffer.concat([Buffer.from('{"traceEvents":['), Buffer.alloc(48 << 20, ' '), Buffer.from(']}')]));
  for (const [kind, headers] of [['files', {}], ['events', { 'content-encoding': 'gzip', 'content-type': 'application/json' }]]) {
    const r = await server.request('POST', `/traces/${id}/${kind}`, { body: bomb, headers });
    assert.equal(r.status, 413, kind);
    assertNames(r, 'max-inflate-ratio', 100);
  }
  assert.equal((await server.stopTrace(id)).counts.stored, 0);
});

test('max-header-bytes', async (t) => {
  const server = await limited(t, 'max-header-bytes', 2048);
  await server.expect('GET', '/healthz', [200], { headers: { 'x-some': text(500) } });
  for (const bytes of [request('GET', '/healthz', ['Host: localhost', `X-Some: ${text(3000)}`]), request('GET', `/types/${text(3000)}`)]) {
    const { replies, text: got } = await raw(server.port, bytes);
    assert.equal(replies[0]?.status, 431, got.slice(0, 300));
    const p = JSON.parse(replies[0].body);
    assert.deepEqual([p.type, p.limit, p.unit, p.max], ['urn:traceplane:problem:headers-too-large', 'max-header-bytes', 'bytes', 2048]);
  }
});

// Open n connections that say nothing, then ask over one more.
async function crowd(t, server, n) {
  const sockets = Array.from({ length: n }, () => net.connect(server.port, '127.0.0.1'));
  t.after(() => sockets.forEach((s) => s.destroy()));
  await Promise.all(sockets.map((s) => new Promise((r) => s.on('connect', r))));
  for (let i = 0; i < 100; i++) {
    const r = await raw(server.port, request('GET', '/types', ['Host: localhost', 'Connection: close']));
    if (r.replies[0]?.status !== 200) return r;
    await new Promise((again) => setTimeout(again, 20));
  }
  return null;
}

for (const name of ['max-connections', 'max-connections-per-peer'])
  test(name, async (t) => {
    const server = await limited(t, name, 8, { types: false });
    const r = await crowd(t, server, 10);
    assert.ok(r !== null && r.replies.length === 1, 'one connection too many is told so');
    assert.ok([429, 503].includes(r.replies[0].status), r.text);
    assert.ok(r.replies[0].headers['retry-after'], r.text);
    const p = JSON.parse(r.replies[0].body.toString());
    assert.deepEqual([p.limit, p.unit, p.max], [name, 'connections', 8], r.text);
  });

test('max-requests-per-s', async (t) => {
  const server = await limited(t, 'max-requests-per-s', 5, { types: false });
  server.agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  let refused;
  for (let i = 0; i < 20 && !refused; i++)
    refused = (await Promise.all(Array.from({ length: 40 }, () => server.request('GET', '/types?limit=1')))).find((r) => r.status === 429);
  assert.ok(refused, '40 requests at once are more than 5 a second');
  assert.ok(refused.headers['retry-after']);
  assertNames(refused, 'max-requests-per-s', 5);
  await new Promise((r) => setTimeout(r, 1200));
  await server.expect('GET', '/types?limit=1', [200]);
});

test('max-list-items', async (t) => {
  const server = await limited(t, 'max-list-items', 3);
  for (const target of ['/types', '/traces', '/producers', '/jobs']) {
    assert.match((await server.problem('GET', `${target}?limit=4`, 400, 'invalid-parameter')).detail, /\b3\b/);
    await server.expect('GET', `${target}?limit=3`, [200]);
  }
  for (let i = 0; i < 5; i++) await server.stopTrace((await server.createTrace({})).id);
  assert.equal((await server.get('/traces')).json().items.length, 3);
});

test('max-json-depth', async (t) => {
  const server = await limited(t, 'max-json-depth', 4);
  const deep = (n) => ({ metadata: Array.from({ length: n - 2 }).reduce((v) => ({ a: v }), {}) });
  await server.expect('POST', '/traces', [200], { body: { dry_run: true, ...deep(4) } });
  assert.match((await server.problem('POST', '/traces', 400, 'invalid-json', { body: deep(5) })).detail, /\b4\b/);
  const { id } = await server.createTrace({});
  const nested = Array.from({ length: 20 }).reduce((v) => [v], 1);
  const r = await server.request('POST', `/traces/${id}/events`, { body: [slice('deep', 1, 1, { args: { nested } }), slice('flat', 2, 1)] });
  assert.ok(r.status === 400 || (r.json().rejected === 1 && r.json().accepted === 1), `${r.status} ${r.body}`);
});
