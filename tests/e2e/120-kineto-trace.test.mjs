// Stock PyTorch processes, of both ages, are traced with one request: they start together, and their files are the trace.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { assertNobodyDied, clients, dropped, producers, serveKineto, until } from './lib/kineto.mjs';
import { mayRepeat, traced, tracedBy } from './lib/kineto_late.mjs';

test('processes of both ages are one trace', async (t) => {
  const server = await serveKineto(t);
  const young = clients(t, server, { count: 2 });
  const old = clients(t, server, { old: 1 });
  const listed = await producers(server, 3);
  assert.deepEqual(new Set(listed.map((p) => p.backend)), new Set(['pytorch']));
  for (const p of listed) assert.equal(p.name, `kineto-${p.pid}`);

  const dry = (await server.expect('POST', '/traces', [200, 201], { body: { dry_run: true, require: 'all' } })).json();
  assert.equal(dry.matched.length, 3);
  const end = await tracedBy(server, async () => {
    const trace = await server.createTrace({ require: 3, stop: { duration_ms: 300 }, kineto: { warmup_ms: 0, record_shapes: true } });
    assert.equal(trace.state, 'prepared');
    assert.ok(Date.parse(trace.start_at) - Date.parse(trace.created_at) < 8000, `${trace.start_at} is more than 8 s away`);
    return trace.id;
  }, [young, old]);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  assert.deepEqual(end.matched.map((m) => m.state), ['done', 'done', 'done']);

  const starts = [...young.of('recording'), ...old.of('recording')].filter((s) => s.wanted_ms === Date.parse(end.start_at));
  assert.equal(starts.length, 3);
  const spread = Math.max(...starts.map((s) => s.start_ms)) - Math.min(...starts.map((s) => s.start_ms));
  t.diagnostic(`3 processes started within ${spread} ms`);
  for (const c of [young, old]) { assertNobodyDied(c); assert.deepEqual(dropped(c), []); }

  const download = await server.downloadChrome(end.id);
  assert.equal(eventsOf(download).length, 30);
  assert.deepEqual(new Set(download.traceplane.producers.map((p) => p.kind)), new Set(['kineto']));
  await until('the folders are removed', () => fs.readdirSync(server.kineto.traceDir).every((d) => fs.readdirSync(`${server.kineto.traceDir}/${d}`).length === 0));
});

test('a filter travels as far as Kineto can take it, and the rest is applied to the file', async (t) => {
  const server = await serveKineto(t);
  await server.registerTypes(['ascend.KERNEL']);
  const c = clients(t, server);
  await producers(server, 1);
  const filter = { include: ['cpu_op', 'ascend.KERNEL'], names: { exclude: ['*-2'] } };
  const end = await traced(server, { filter, stop: { duration_ms: 100 }, kineto: { warmup_ms: 0 } }, [c]);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.deepEqual([...new Set(eventsOf(await server.downloadChrome(end.id)).map((e) => e.cat))], ['cpu_op']);
  assert.ok(!eventsOf(await server.downloadChrome(end.id)).some((e) => e.name.endsWith('-2')));
  assert.deepEqual(dropped(c), []);

  const other = await server.createTrace({ filter: { include: ['ascend.KERNEL'] } });
  assert.match(other.unmatched[0].reason, /no type that Kineto records/);
});

test('by iterations: the trace ends when the files are here', async (t) => {
  const server = await serveKineto(t);
  const c = clients(t, server, { 'step-ms': 20 });
  await producers(server, 1);
  const trace = await server.createTrace({ kineto: { iterations: 5, iteration_roundup: 10 } });
  const end = await server.waitFinal(trace.id);
  assert.equal(end.outcome, 'complete', JSON.stringify(end.matched));
  assert.match(end.history.find((h) => h.state === 'stopping').cause, /Kineto processes are done/);
  assert.equal(c.of('file').length, 1);
});

test('options that are not known or not possible are refused by name', async (t) => {
  const server = await serveKineto(t);
  for (const [kineto, field] of [[{ with_stacks: true }, 'kineto.with_stacks'], [{ warmup_ms: 600001 }, 'kineto.warmup_ms'],
    [{ with_stack: 1 }, 'kineto.with_stack'], [{ iteration_roundup: 5 }, 'kineto.iteration_roundup']]) {
    const p = await server.problem('POST', '/traces', 400, 'invalid-field', { body: { kineto } });
    assert.equal(p.field, field);
  }
});

test('these scenarios try again only what the process itself was late for', () => {
  const end = (reason) => ({ start_at: new Date(10000).toISOString(), kineto: { warmup_ms: 0 }, matched: [{ kind: 'kineto', name: 'k', state: 'lost', reason }] });
  const late = 'it asked too late to start with the others', dropped = 'no file: the process dropped the request';
  const poll = (ms, us = 300) => ({ client: 0, pid: 1, event: 'poll', ms, us }), taken = (ms) => ({ client: 0, pid: 1, event: 'accepted', ms });
  const drop = { client: 0, pid: 1, event: 'dropped', ms: 9600, why: 'insufficient time for warmup' };
  const of = (...events) => [{ events }];
  assert.equal(mayRepeat(end('no file: the process wrote none'), 3000, of(poll(9500))), false);
  assert.equal(mayRepeat(end(late), 3000, of(poll(9500))), true, 'it asked when it was too late');
  assert.equal(mayRepeat(end(late), 3000, of(poll(7000, 80000))), true, 'it had no answer in time');
  assert.throws(() => mayRepeat(end(late), 3000, of(poll(7000))), /only 0 of the processes/, 'it asked in time and was told nothing');
  assert.equal(mayRepeat(end(dropped), 3000, of(poll(7000), taken(7000), drop)), true, 'its tick was late');
  assert.throws(() => mayRepeat(end(dropped), 3000, of(poll(9400), taken(9400), drop)), /only 0/, 'it was told too late');
  assert.throws(() => mayRepeat(end(dropped), 3000, of(poll(7000), taken(7000))), /only 0/, 'it dropped nothing');
});
