// ETag, If-None-Match, HEAD; Range in all its forms gives bytes of the whole.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Random, seedOf } from './lib/random.mjs';
import { slices } from './lib/events.mjs';
import { pick, serve } from './lib/server.mjs';

async function finished(t) {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  for (const rank of [0, 1]) await server.events(id, slices(pick(2000, 300), `r${rank}`), { rank });
  await server.stopTrace(id);
  return { server, url: `/traces/${id}/download` };
}
const FORMS = ['?format=chrome', '?format=perfetto', '?format=chrome&compress=gzip', '?format=perfetto&compress=zstd', '?format=chrome&ranks=1'];

test('an entity tag names the bytes', async (t) => {
  const { server, url } = await finished(t);
  const tags = new Set();
  for (const form of FORMS) {
    const r = await server.expect('GET', url + form, [200]);
    assert.match(r.headers.etag, /^"[^"]+"$/, form);
    tags.add(r.headers.etag);
    const same = await server.expect('GET', url + form, [304], { headers: { 'if-none-match': `"x", ${r.headers.etag}` } });
    assert.equal(same.body.length, 0);
    assert.equal(same.headers.etag, r.headers.etag);
    await server.expect('GET', url + form, [304], { headers: { 'if-none-match': '*' } });
    await server.expect('GET', url + form, [200], { headers: { 'if-none-match': '"x"' } });
    const head = await server.expect('HEAD', url + form, [200]);
    assert.equal(head.body.length, 0);
    assert.equal(head.headers.etag, r.headers.etag);
    if (r.headers['content-length']) assert.equal(head.headers['content-length'], r.headers['content-length'], form);
  }
  assert.equal(tags.size, FORMS.length);
});

test('ranges are parts of the whole', async (t) => {
  const random = new Random(seedOf(t));
  const { server, url } = await finished(t);
  for (const form of FORMS) {
    const whole = (await server.expect('GET', url + form, [200])).body, n = whole.length;
    const a = random.between(1, n - 2), b = random.between(a, n - 1);
    const cases = [['0-0', 0, 0], ['0-99', 0, 99], [`${a}-${b}`, a, b], [`${a}-`, a, n - 1], ['-17', n - 17, n - 1], [`${n - 1}-`, n - 1, n - 1], [`0-${n * 2}`, 0, n - 1], [`-${n * 2}`, 0, n - 1]];
    for (const [range, first, last] of cases) {
      const r = await server.expect('GET', url + form, [206], { headers: { range: `bytes=${range}` } });
      assert.equal(r.headers['content-range'], `bytes ${first}-${last}/${n}`, `${form} ${range}`);
      assert.ok(r.body.equals(whole.subarray(first, last + 1)), `${form} ${range}`);
    }
    const past = await server.problem('GET', url + form, 416, 'range-not-satisfiable', { headers: { range: `bytes=${n}-` } });
    assert.ok(past);
    for (const range of ['bytes=5-4', 'lines=1-2', 'bytes=0-1,5-9', 'bytes=x-']) assert.equal((await server.expect('GET', url + form, [200], { headers: { range } })).body.length, n, range);
  }
});

test('a range with a condition is the part only of that very whole', async (t) => {
  const { server, url } = await finished(t);
  const { etag } = (await server.expect('GET', url, [200])).headers;
  await server.expect('GET', url, [206], { headers: { range: 'bytes=0-9', 'if-range': etag } });
  await server.expect('GET', url, [200], { headers: { range: 'bytes=0-9', 'if-range': '"other"' } });
});

test('a download in pieces is the download', async (t) => {
  const { server, url } = await finished(t);
  for (const form of FORMS) {
    const whole = (await server.expect('GET', url + form, [200])).body, step = Math.ceil(whole.length / 7);
    const parts = [];
    for (let at = 0; at < whole.length; at += step) parts.push((await server.expect('GET', url + form, [206], { headers: { range: `bytes=${at}-${at + step - 1}` } })).body);
    assert.ok(Buffer.concat(parts).equals(whole), form);
  }
});
