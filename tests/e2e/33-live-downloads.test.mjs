// A download of a trace that still records sorts what is there so far, which takes memory: only so many do that at once.
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { eventsOf, slices } from './lib/events.mjs';
import { pick, serve } from './lib/server.mjs';

test('too many at once are refused, the others are whole', async (t) => {
  const server = await serve(t, { args: ['--seal-threads', '40'] });
  server.agent = new http.Agent({ maxSockets: 100 });
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  const n = pick(3000, 300);
  for (let i = 0; i < 4; i++) await server.events(id, slices(n, `batch${i}`));
  for (const what of ['download', 'summary']) {
    const refused = [], good = [];
    for (let round = 0; round < 20 && refused.length === 0; round++)
      for (const r of await Promise.all(Array.from({ length: 40 }, () => server.request('GET', `/traces/${id}/${what}`)))) (r.status === 200 ? good : refused).push(r);
    assert.ok(good.length > 0 && refused.length > 0, `${what}: ${good.length} of ${good.length + refused.length}`);
    for (const r of refused) assert.deepEqual([r.status, r.json().type, typeof r.json().max], [429, 'urn:traceplane:problem:limit-exceeded', 'number']);
    if (what === 'download') assert.equal(eventsOf(good[0].json()).length, 4 * n);
  }
  assert.equal((await server.stopTrace(id)).counts.stored, 4 * n);
});
