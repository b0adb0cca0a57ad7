// Sixty processes that begin at once: all of them arrive, complete, and start together.
import assert from 'node:assert/strict';
import test from 'node:test';
import { assertNobodyDied, clients, producers, serveKineto } from './lib/kineto.mjs';

test('60 of 60', async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { count: 60 });
  await producers(server, 60);
  const trace = await server.createTrace({ require: 'all', stop: { duration_ms: 200 }, kineto: { warmup_ms: 1000 } });
  const end = await server.waitFinal(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.equal(end.matched.filter((m) => m.state === 'done').length, 60);
  const starts = c.of('recording');
  assert.equal(starts.length, 60);
  assert.deepEqual([...new Set(starts.map((s) => s.wanted_ms))], [Date.parse(trace.start_at)]);
  const late = starts.map((s) => s.start_ms - s.wanted_ms).sort((a, b) => a - b);
  t.diagnostic(`60 processes started up to ${late.at(-1)} ms after the common time, half of them within ${late[30]} ms`);
  assertNobodyDied(c);
  assert.deepEqual(c.of('dropped'), []);
});
