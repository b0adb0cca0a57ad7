// What becomes of a process that does not do as it was told is in the trace, with its reason.
import assert from 'node:assert/strict';
import test, { describe } from 'node:test';
import { assertNobodyDied, clients, producers, serveKineto, until } from './lib/kineto.mjs';
import { traced } from './lib/kineto_late.mjs';

const QUICK = { stop: { duration_ms: 200 }, kineto: { warmup_ms: 0 } };

// With seconds to spare for a busy machine; and `early` processes do not miss their start.
const inTime = (ms = 8000) => ({ start: { at: new Date(Date.now() + ms).toISOString() }, ...QUICK });

test('one that profiles itself is busy: not matched, and not counted on', async (t) => {
  const server = await serveKineto(t);
  clients(t, server, { 'busy-ms': 60000 });
  await producers(server, 1, 'busy');
  const trace = (await server.expect('POST', '/traces', [200], { body: { dry_run: true } })).json();
  assert.equal(trace.unmatched[0].reason, 'busy: the application is profiling itself');
  const p = await server.problem('POST', '/traces', 409, 'not-enough-producers', { body: { ...QUICK, require: 'all' } });
  assert.deepEqual([p.required, p.available], [1, 0]);
});

const CASES = [
  [{ 'die-ms': 1 }, /process ended/],
  [{ 'drops-files': 1 }, /no file/],
  [{ preempts: 1 }, /no file: the recording was cut short/],
  [{ 'writes-other-id': 1 }, /no file: the file is of another request/],
  [{ 'writes-link': 1 }, /no file: the file is a link/],
];

// Side by side: each of them waits, most of the time, for a start.
describe('one that does not do as it was told', { concurrency: true }, () => {
  for (const [knobs, reason] of CASES) {
    test(`${Object.keys(knobs)[0]}: ${reason.source}`, async (t) => {
      const server = await serveKineto(t);
      const [bad, good] = [knobs, {}].map((k) => clients(t, server, { early: 1, 'interval-ms': 1000, ...k }));
      await producers(server, 2);
      await until('their rhythm is known', () => [bad, good].every((c) => c.of('poll').length >= 4));
      const end = await server.waitFinal((await server.createTrace(inTime())).id);
      assert.equal(end.outcome, 'partial', JSON.stringify(end.matched));
      assert.equal(end.matched.filter((m) => m.state === 'done').length, 1);
      const lost = end.matched.find((m) => m.state === 'lost');
      assert.match(lost.reason, reason);
      assert.match(end.reason, reason);
      assertNobodyDied(bad);
      assertNobodyDied(good);
    });
  }
});

test('a file that ends in the middle is kept as far as it goes, and told', async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { 'writes-damage': 1 });
  await producers(server, 1);
  const end = await traced(server, QUICK, [c]);
  assert.equal(end.outcome, 'partial', JSON.stringify(end.matched));
  assert.match(end.reason, /damaged/);
  assert.equal(end.counts.stored, 11);
});

test('a cancel before anybody was told reaches nobody', async (t) => {
  for (let i = 0; ; i++) {
    const server = await serveKineto(t), c = clients(t, server);
    await producers(server, 1);
    const trace = await server.createTrace(QUICK);
    await server.expect('POST', `/traces/${trace.id}/cancel`, [202]);
    const cancelled = Date.now();
    await until('it has asked again', () => c.of('poll').some((e) => e.ms > cancelled));
    // It may have asked in between when the machine stood still there.
    if (i < 3 && c.of('accepted').some((e) => e.ms <= cancelled)) continue;
    assert.deepEqual(c.of('accepted'), []);
    await producers(server, 1, 'idle');
    return;
  }
});

test('a start that is far away takes no process: told shortly before, and free again after a cancel', async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { early: 1, 'interval-ms': 1000 });
  await until('its rhythm is known', () => c.of('poll').length >= 3);
  const trace = await server.createTrace(inTime(3000000));
  const n = c.of('poll').length;
  await until('it has asked again', () => c.of('poll').length >= n + 3);
  assert.deepEqual(c.of('accepted'), []);
  await server.expect('POST', `/traces/${trace.id}/cancel`, [202]);
  const end = await server.waitFinal((await server.createTrace(inTime())).id);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  const p = await server.problem('POST', '/traces', 429, 'limit-exceeded', { body: inTime(4000000) });
  assert.equal(p.limit, 'max-trace-prepared-ms');
});

for (const knobs of [{ mute: 1, 'process-ms': 6000 }, { 'two-sockets': 1 }, { 'ends-with-file': 1 }]) {
  test(`${Object.keys(knobs)[0]}: it is traced`, async (t) => {
    const server = await serveKineto(t);
    const c = clients(t, server, { early: 1, 'interval-ms': 1000, ...knobs });
    await producers(server, 1);
    await until('its rhythm is known', () => c.of('poll').length >= 4);
    assert.equal((await producers(server, 1)).length, 1);
    const end = await server.waitFinal((await server.createTrace(inTime())).id);
    assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
    assert.equal(end.counts.stored, 11);
    assertNobodyDied(c);
  });
}
