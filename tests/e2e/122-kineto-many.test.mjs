// Sixty processes that begin at once: all of them arrive, complete, and start together.
import assert from 'node:assert/strict';
import test from 'node:test';
import { assertNobodyDied, clients, dropped, producers, serveKineto } from './lib/kineto.mjs';
import { traced } from './lib/kineto_late.mjs';

test('60 of 60', async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { count: 60 });
  await producers(server, 60);
  const end = await traced(server, { require: 'all', stop: { duration_ms: 200 }, kineto: { warmup_ms: 1000 } }, [c]);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.equal(end.matched.filter((m) => m.state === 'done').length, 60);
  const starts = c.of('recording').filter((s) => s.wanted_ms === Date.parse(end.start_at));
  assert.equal(starts.length, 60);
  const late = starts.map((s) => s.start_ms - s.wanted_ms).sort((a, b) => a - b);
  t.diagnostic(`60 processes started up to ${late.at(-1)} ms after the common time, half of them within ${late[30]} ms`);
  assertNobodyDied(c);
  assert.deepEqual(dropped(c), []);
});
