// gzip, zstd or neither: by Accept-Encoding, or compress= for a file that stays compressed.
import assert from 'node:assert/strict';
import test from 'node:test';
import { slices } from './lib/events.mjs';
import { serve } from './lib/server.mjs';
import { HAS_ZSTD, unpack } from './lib/unpack.mjs';

async function finished(t) {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  await server.events(id, slices(3000));
  await server.stopTrace(id);
  return { server, id };
}

test('what is accepted decides, and all of it is the same trace', async (t) => {
  const { server, id } = await finished(t);
  for (const format of ['chrome', 'perfetto']) {
    const whole = await server.download(id, `?format=${format}`);
    const cases = [['gzip', 'gzip'], ['gzip;q=0.5, zstd', 'zstd'], ['zstd;q=0, gzip', 'gzip'], ['identity', undefined], ['br', undefined], ['*;q=0, identity', undefined], ['gzip, deflate, br, zstd', /gzip|zstd/]];
    for (const [accept, want] of cases) {
      const r = await server.expect('GET', `/traces/${id}/download?format=${format}`, [200], { headers: { 'accept-encoding': accept } });
      const got = r.headers['content-encoding'];
      assert.ok(want instanceof RegExp ? want.test(got) : got === want, `${format}, ${accept}: ${got}`);
      assert.match(r.headers.vary ?? '', /accept-encoding/i);
      if (got !== 'zstd' || HAS_ZSTD) assert.ok(unpack(r.body, got).equals(whole), `${format}, ${accept}`);
    }
    await server.problem('GET', `/traces/${id}/download?format=${format}`, 406, 'not-acceptable', { headers: { 'accept-encoding': 'identity;q=0, br' } });
  }
});

test('compress= makes a compressed file, whatever is accepted', async (t) => {
  const { server, id } = await finished(t);
  const whole = await server.download(id);
  for (const [compress, end] of [['gzip', '.json.gz'], ['zstd', '.json.zst'], ['none', '.json']]) {
    const r = await server.expect('GET', `/traces/${id}/download?compress=${compress}`, [200], { headers: { 'accept-encoding': 'identity' } });
    assert.ok(r.headers['content-disposition'].replace(/"/g, '').endsWith(end), r.headers['content-disposition']);
    if (compress !== 'zstd' || HAS_ZSTD) assert.ok(unpack(r.body, compress).equals(whole), compress);
  }
});

test('the zstd judge is here', (t) => {
  if (!HAS_ZSTD) t.skip('no zstd program: zstd downloads are not unpacked');
});
