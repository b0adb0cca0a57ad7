// Bodies cut off, clients that leave in the middle of uploads and downloads: nothing half stored, nothing left behind.
import assert from 'node:assert/strict';
import net from 'node:net';
import test from 'node:test';
import { namesOf, slices } from './lib/events.mjs';
import { Random, seedOf } from './lib/random.mjs';
import { request } from './lib/raw.mjs';
import { pick, serve } from './lib/server.mjs';

const TIMES = pick(300, 60);

// Send bytes and go away: after sending, or as soon as `wanted` bytes of the answer are here.
function leave(port, bytes, { wanted = 0, how = 'destroy' } = {}) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    let got = 0;
    const go = () => { how === 'reset' ? socket.resetAndDestroy?.() ?? socket.destroy() : socket.destroy(); resolve(); };
    socket.on('error', resolve);
    socket.on('connect', () => socket.write(bytes, () => { if (wanted === 0) go(); }));
    socket.on('data', (c) => { got += c.length; if (wanted > 0 && got >= wanted) go(); });
    socket.on('close', resolve);
  });
}

// Wait until files and memory of the server are back, or almost. What is asserted is the sample that was waited for: the next one may differ.
async function settles(server, before, slackKib) {
  const sample = async () => ({ ...server.usage(), open: (await server.metric('traceplane_uploads_open')) + (await server.metric('traceplane_downloads_open')) });
  const isBack = (now) => now.files <= before.files + 1 && now.threads <= before.threads && now.rssKib < before.rssKib + slackKib && now.open === 0;
  let now = await sample();
  for (let i = 0; i < 3000 && !isBack(now); i++) {
    await new Promise((r) => setTimeout(r, 20));
    now = await sample();
  }
  assert.ok(isBack(now), `${JSON.stringify(now)}, before ${JSON.stringify(before)}, ${slackKib} KiB more are right`);
}

// A client's end that comes together with its last bytes may be noticed only when it has been silent for so long.
// What this program sends comes sooner, though the machine stands still for seconds.
const SHORT = { args: ['--idle-timeout-s', '8'] };
const SLACK_KIB = pick(16 << 10, 256 << 10);

test('uploads that break off leave nothing', async (t) => {
  const random = new Random(seedOf(t));
  const server = await serve(t, SHORT);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  const body = JSON.stringify({ traceEvents: slices(2000, 'lost') });
  const cut = async (kind) => {
    const whole = request('POST', `/traces/${id}/${kind}?rank=${random.below(3)}`, ['Host: localhost', 'Content-Type: application/json', `Content-Length: ${body.length}`], body);
    await leave(server.port, whole.subarray(0, random.between(20, whole.length - 2)), { how: random.pick(['destroy', 'reset']) });
  };
  for (let i = 0; i < TIMES / 4; i++) await cut(random.pick(['events', 'files']));
  await server.events(id, slices(1));
  const before = server.usage();
  for (let i = 0; i < TIMES; i++) await cut(random.pick(['events', 'files']));
  await settles(server, before, SLACK_KIB);
  await server.events(id, slices(1, 'kept'));
  const end = await server.stopTrace(id);
  assert.equal(end.counts.stored, 2, JSON.stringify(end.streams));
  assert.deepEqual(namesOf(await server.downloadChrome(id)), ['k-0', 'kept-0']);
});

test('chunked bodies that end early are not stored', async (t) => {
  const server = await serve(t, SHORT);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  const text = JSON.stringify(slices(3));
  await leave(server.port, request('POST', `/traces/${id}/events`, ['Host: localhost', 'Transfer-Encoding: chunked'], `${text.length.toString(16)}\r\n${text}\r\n`));
  await settles(server, server.usage(), SLACK_KIB);
  assert.equal((await server.stopTrace(id)).counts.stored, 0);
});

test('downloads that break off leave nothing', async (t) => {
  const random = new Random(seedOf(t));
  const server = await serve(t, SHORT);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  for (let i = 0; i < 4; i++) await server.events(id, slices(5000, `batch${i}`));
  const live = await server.createTrace({ job: 'live' });
  await server.events(live.id, slices(500));
  await server.stopTrace(id);
  const whole = await server.download(id);
  const read = () => leave(server.port, request('GET', `/traces/${random.chance(0.8) ? id : live.id}/download?format=${random.pick(['chrome', 'perfetto'])}&compress=${random.pick(['none', 'gzip', 'zstd'])}`, ['Host: localhost', 'Connection: close']),
    { wanted: random.pick([0, 1, 500, 20000]), how: random.pick(['destroy', 'reset']) });
  for (let i = 0; i < TIMES / 4; i++) await read();
  const before = server.usage();
  for (let i = 0; i < TIMES; i++) await read();
  await settles(server, before, SLACK_KIB);
  assert.ok((await server.download(id)).equals(whole));
});

// Clients that stop in the middle of what they send, when they all have. `closed` counts those that the service has closed.
async function silent(t, port, n) {
  const slow = { closed: 0 };
  const sockets = Array.from({ length: n }, () => net.connect(port, '127.0.0.1'));
  t.after(() => sockets.forEach((s) => s.destroy()));
  slow.gone = Promise.all(sockets.map((s) => new Promise((r) => {
    s.on('error', () => {});
    s.on('close', () => { slow.closed++; r(); });
    s.resume();
  })));
  await Promise.all(sockets.map((s, i) => new Promise((r) => {
    s.write(i % 2 ? 'GET /healthz HT' : 'POST /traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{', r);
  })));
  return slow;
}

test('slow clients do not keep others waiting', async (t) => {
  const server = await serve(t, { args: ['--idle-timeout-s', '3600'] });
  const slow = await silent(t, server.port, 50);
  for (let i = 0; i < 50; i++) await server.expect('GET', '/healthz', [200]);
  assert.equal(slow.closed, 0, 'they were all there');
});

test('slow clients do not stay for ever', async (t) => {
  const server = await serve(t, { args: ['--idle-timeout-s', '8'] });
  await (await silent(t, server.port, 50)).gone;
  assert.equal((await server.get('/traces')).json().items.length, 0);
});
