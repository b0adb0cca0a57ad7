// A service that is killed while processes record collects their files when it is back.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { assertNobodyDied, clients, producers, serveKineto, until } from './lib/kineto.mjs';
import { temporaryFolder } from './lib/server.mjs';

test('killed between the order and the file', async (t) => {
  const dataDir = temporaryFolder();
  t.after(() => fs.rmSync(dataDir, { recursive: true, force: true }));
  const first = await serveKineto(t, { dataDir });
  const c = clients(t, first, { 'interval-ms': 1000, 'process-ms': 3000 });
  await producers(first, 1);
  await until('its rhythm is known', () => c.of('poll').length >= 3);
  const trace = await first.createTrace({ stop: { duration_ms: 500 }, kineto: { warmup_ms: 1000 } });
  await until('it records', () => c.of('recording').length > 0);
  await new Promise((r) => setTimeout(r, 1200)); // what has changed is written once a second
  await first.kill();
  const second = await serveKineto(t, { dataDir, kineto: first.kineto });
  const end = await second.waitFinal(trace.id);
  assert.equal(end.outcome, 'complete', JSON.stringify([end.reason, end.matched]));
  assert.equal(end.counts.stored, 11);
  assertNobodyDied(c);
});
