// sync is a long poll: held while there is nothing to say, answered at once when there is.
import assert from 'node:assert/strict';
import test from 'node:test';
import { slice } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

async function producer(server, name = 'p') {
  const p = (await server.expect('POST', '/producers', [201], { body: { name, rank: 0 } })).json();
  return async (body) => {
    const started = Date.now();
    const reply = (await server.expect('POST', `/producers/${p.id}/sync`, [200], { body })).json();
    return { ...reply, ms: Date.now() - started };
  };
}

test('a poll without news is held for as long as it wants', async (t) => {
  const server = await serve(t);
  const sync = await producer(server);
  const r = await sync({ wait_ms: 400 });
  assert.deepEqual(r.commands, []);
  assert.ok(r.ms >= 390, `${r.ms} ms`);
  // One that is held is so each time; any one of the others may come when the machine stands still.
  const quick = [];
  for (let i = 0; i < 10; i++) quick.push((await sync({ wait_ms: 0 })).ms);
  assert.ok(Math.min(...quick) < 390, `${quick} ms`);
});

test('a trace wakes the poll and its commands go through all of their states', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const sync = await producer(server);
  const held = sync({ wait_ms: 30000 });
  await new Promise((r) => setTimeout(r, 200));
  const trace = await server.createTrace({ filter: { include: ['ascend.KERNEL'], min_duration_ns: 5 } });
  const first = await held;
  assert.ok(first.ms < 25000, `${first.ms} ms`);
  const prepare = first.commands.find((c) => c.command === 'prepare');
  assert.deepEqual([prepare.trace_id, prepare.types, prepare.min_duration_ns], [trace.id, [154], 5]);
  assert.ok(prepare.stream >= 1);
  assert.deepEqual(first.commands.map((c) => c.command), ['prepare', 'start']);
  const acked = async (command, more) => sync({ wait_ms: 0, acks: [{ trace_id: trace.id, command }], ...more });
  const again = (await acked('prepare')).commands;
  assert.deepEqual(again.map((c) => c.command), ['start']);
  const [start] = again;
  assert.equal(start.start_at, first.commands[1].start_at);
  assert.match(start.start_at, /Z$/);
  await acked('start', { acks: [{ trace_id: trace.id, command: 'start', started_at: start.start_at }] });
  assert.equal((await server.get(`/traces/${trace.id}`)).json().matched[0].state, 'recording');
  await server.events(trace.id, [slice('k', 1, 5)], { producer: 'p', rank: 0, seq: 1 });
  await server.expect('POST', `/traces/${trace.id}/stop`, [202]);
  const stop = (await sync({ wait_ms: 5000 })).commands.find((c) => c.command === 'stop');
  assert.equal(stop.trace_id, trace.id);
  const counts = [{ trace_id: trace.id, emitted: 3, filtered: 0, dropped: { 'producer-ring-full': 2 } }];
  await acked('stop', { counts });
  const end = await server.waitFinal(trace.id);
  assert.equal(end.outcome, 'lossy', end.reason);
  assert.deepEqual([end.matched[0].state, end.matched[0].reported.emitted, end.matched[0].reported.dropped], ['done', 3, 2]);
});

test('a trace that wants all waits for them, and then tells them when to start', async (t) => {
  const server = await serve(t);
  const syncs = [await producer(server), await producer(server, 'q')];
  for (const sync of syncs) await sync({ wait_ms: 0 });
  const trace = await server.createTrace({ require: 'all' });
  assert.equal(trace.state, 'prepared');
  const acks = [{ trace_id: trace.id, command: 'prepare' }];
  for (const sync of syncs) assert.deepEqual((await sync({ wait_ms: 0 })).commands.map((c) => c.command), ['prepare']);
  assert.deepEqual((await syncs[0]({ wait_ms: 0, acks })).commands, []);
  const [start] = (await syncs[1]({ wait_ms: 0, acks })).commands;
  assert.deepEqual([(await syncs[0]({ wait_ms: 10000 })).commands[0].start_at, start.command], [start.start_at, 'start']);
});

test('a cancel reaches who holds a poll, and a refusal is told in the trace', async (t) => {
  const server = await serve(t);
  const sync = await producer(server);
  const trace = await server.createTrace({ start: { when: 'manual' } });
  await sync({ wait_ms: 1000 });
  await sync({ wait_ms: 0, acks: [{ trace_id: trace.id, command: 'prepare', refused: true, reason: 'busy: profiling itself' }] });
  const now = (await server.get(`/traces/${trace.id}`)).json();
  assert.deepEqual([now.matched[0].state, now.matched[0].reason], ['refused', 'busy: profiling itself']);
  const other = await producer(server, 'q');
  await other({ wait_ms: 1000 });
  const held = other({ wait_ms: 20000, acks: [{ trace_id: trace.id, command: 'prepare' }] });
  await new Promise((r) => setTimeout(r, 100));
  await server.expect('POST', `/traces/${trace.id}/cancel`, [202]);
  assert.equal((await held).commands[0].command, 'cancel');
});

test('counts that do not add up and fields that are none are refused', async (t) => {
  const server = await serve(t);
  const { id } = (await server.expect('POST', '/producers', [201], { body: { name: 'p' } })).json();
  const bad = [[{ step: -1 }, 'step'], [{ acks: [{ trace_id: 'x', command: 'fly' }] }, 'acks[0].command'], [{ wait_ms: 1e9 }, 'wait_ms'], [{ clock: { sent_at: 'now' } }, 'clock.sent_at']];
  for (const [body, field] of bad) {
    const p = await server.problem('POST', `/producers/${id}/sync`, 400, 'invalid-field', { body });
    assert.ok(p.field === field || (field === 'clock.sent_at' && p.field.startsWith('clock.')), JSON.stringify(p));
  }
});
