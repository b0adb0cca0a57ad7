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
  const usage = () => ({ server: server.usage(), p: p.usage() });
  const cycles = async (n) => {
    for (let i = 0; i < n; i++) {
      const trace = await server.createTrace();
      await p.recording();
      const end = await server.stopTrace(trace.id);
      assert.equal(end.state, 'complete', end.reason);
      assert.ok(['complete', 'empty', 'lossy'].includes(end.outcome), `cycle ${i}: ${end.outcome}: ${end.reason}`);
      assert.equal(end.counts.emitted, end.counts.stored + end.counts.filtered + end.counts.dropped);
      await server.expect('DELETE', `/traces/${trace.id}`, [204]);
    }
  };
  await cycles(WARM);
  // What waits while a process gets no turn takes memory once, and connections come anew; what is left behind adds up in each round.
  const rounds = [];
  do {
    const before = usage();
    await cycles(CYCLES);
    rounds.push(growth(before, usage()));
  } while (rounds.at(-1).length > 0 && rounds.length < 4);
  t.diagnostic(`after ${WARM + rounds.length * CYCLES} cycles: ${JSON.stringify(usage())}`);
  assert.deepEqual(rounds.at(-1), [], JSON.stringify(rounds));
});

// What has grown, and by more than it may.
function growth(before, after) {
  const most = {
    server: { threads: 0, files: 2, rssKib: pick(4096, 300000) },
    p: { threads: 0, files: 1, rssKib: pick(1024, 300000) },
  };
  return Object.entries(most).flatMap(([process, bounds]) => Object.entries(bounds)
    .filter(([what, n]) => after[process][what] > before[process][what] + n)
    .map(([what]) => `${what} of ${process === 'p' ? 'the program' : 'the service'}: ${before[process][what]} became ${after[process][what]}`));
}
