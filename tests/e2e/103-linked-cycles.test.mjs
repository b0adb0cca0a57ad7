// A thousand starts and stops in a row: no growth of memory, descriptors or threads on either side.
import assert from 'node:assert/strict';
import test from 'node:test';
import { startLinked } from './lib/linked.mjs';
import { pick, serve } from './lib/server.mjs';

const CYCLES = Number(process.env.TRACEPLANE_CYCLES || pick(1000, 60)), WARM = pick(100, 20);

// Rings are small here, so that all of their pages are in use before the count begins; they may fill up while the machine is busy.
test(`${CYCLES} cycles leave no trace in either process`, async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0, args: ['--threads', '2', '--pause-us', '500'], env: { TRACEPLANE_RING_BYTES: '16K' } });
  let before;
  const started = Date.now();
  for (let i = 0; i < CYCLES + WARM; i++) {
    if (i === WARM) before = { server: server.usage(), p: p.usage() };
    const trace = await server.createTrace();
    await p.until((s) => s.isRecording, 'recording');
    const end = await server.stopTrace(trace.id);
    assert.equal(end.state, 'complete', end.reason);
    assert.ok(['complete', 'empty', 'lossy'].includes(end.outcome), `cycle ${i}: ${end.outcome}: ${end.reason}`);
    assert.equal(end.counts.emitted, end.counts.stored + end.counts.filtered + end.counts.dropped);
    await server.expect('DELETE', `/traces/${trace.id}`, [204]);
  }
  const after = { server: server.usage(), p: p.usage() };
  t.diagnostic(`${((Date.now() - started) / (CYCLES + WARM)).toFixed(1)} ms a cycle; before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);
  assert.equal(after.p.threads, before.p.threads);
  assert.ok(after.p.files <= before.p.files + 1, `${before.p.files} files became ${after.p.files}`);
  assert.equal(after.server.threads, before.server.threads);
  assert.ok(after.server.files <= before.server.files + 2, `${before.server.files} files became ${after.server.files}`);
  assert.ok(after.p.rssKib <= before.p.rssKib + pick(1024, 300000), `the program grew from ${before.p.rssKib} to ${after.p.rssKib} KiB`);
  assert.ok(after.server.rssKib <= before.server.rssKib + pick(4096, 300000), `the service grew from ${before.server.rssKib} to ${after.server.rssKib} KiB`);
});
