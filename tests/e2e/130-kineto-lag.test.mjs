// A process that got an answer too late reads each one a request late, until it is left without one.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { clients, producers, serveKineto, until } from './lib/kineto.mjs';
import { traced } from './lib/kineto_late.mjs';

const SKIPPED = 'traceplane_kineto_datagrams_total\\{answer="none-skipped"\\}';
const ASK = { stop: { duration_ms: 200 }, kineto: { warmup_ms: 0 } };

// Two processors that may be used here; one is all there is on some machines.
function processors() {
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1];
  return list.split(',').flatMap((part) => { const [a, b = a] = part.split('-').map(Number); return [a, b]; }).filter((c, i, all) => all.indexOf(c) === i);
}

const pinned = (processor) => (processor === undefined ? [] : ['taskset', '-c', String(processor)]);
const [first, second] = processors();

// On a processor of its own a process has read the old answer before the service looks at its request.
for (const [where, processor, skip] of [['on the same processor', first, false], ['on another processor', second, second === undefined && 'there is one processor only']]) {
  test(`those that read an answer late are put back in step, ${where}`, { skip }, async (t) => {
    const server = await serveKineto(t, { through: pinned(first) });
    const c = clients(t, server, { count: 12, 'late-reads': 1, 'interval-ms': 1000, early: 1 }, pinned(processor));
    // One that is in step finds no old answer before it asks.
    const inStep = (n) => { const last = c.of('poll').filter((e) => e.client === n).slice(-2); return last.length === 2 && last.every((e) => !e.behind); };
    await until('all were left without an answer', async () => (await server.metric(SKIPPED)) >= 12);
    await until('all read the answers to their own requests', () => [...Array(12).keys()].every(inStep));
    assert.equal(c.of('late').length, 12);
    const end = await traced(server, ASK, [c]);
    assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  });

  test(`a trace of one that lags begins when it said, ${where}`, { skip }, async (t) => {
    const server = await serveKineto(t, { through: pinned(first) });
    const c = clients(t, server, { count: 2, 'late-reads': 1 }, pinned(processor));
    await producers(server, 2);
    const dry = async () => (await server.expect('POST', '/traces', [200], { body: { ...ASK, dry_run: true } })).json();
    await until('it is known that both lag', async () => (await dry()).matched.filter((m) => /^lagging: /.test(m.reason ?? '')).length === 2);
    const end = await traced(server, ASK, [c]);
    assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
    const wanted = new Set(c.of('recording').filter((e) => e.wanted_ms === Date.parse(end.start_at)).map((e) => e.client));
    assert.equal(wanted.size, 2);
  });
}
