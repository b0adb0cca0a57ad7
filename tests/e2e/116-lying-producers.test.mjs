// A producer that lies spoils at most its own stream, and the trace says so.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { PACKETS, head } from './lib/native.mjs';
import { serve } from './lib/server.mjs';

const HONEST = 50;
const at = (ms, name, more = {}) => ({ ph: 'X', cat: 'lie.A', name, pid: 1, tid: 1, ts: ms * 1000, dur: 10, ...more });

// A trace in which an honest producer and a liar record; lie() is given what it needs to lie with.
async function traceWithLiar(t, lie, filter) {
  const server = await serve(t);
  await server.registerTypes(['lie.A', 'lie.B']);
  const join = async (name) => (await server.expect('POST', '/producers', [200, 201], { body: { name, kind: 'native' } })).json().id;
  const ids = { honest: await join('honest'), liar: await join('liar') };
  const { id } = await server.createTrace(filter ? { filter } : {});
  const sync = async (who, body = {}) => (await server.expect('POST', `/producers/${ids[who]}/sync`, [200], { body: { wait_ms: 0, ...body } })).json();
  const ack = (who, command, more) => sync(who, { acks: [{ trace_id: id, command, ...more }] });
  const streams = {};
  for (const who of ['honest', 'liar']) {
    streams[who] = (await sync(who)).commands.find((c) => c.command === 'prepare').stream;
    await ack(who, 'prepare');
  }
  const now = Date.now();
  await ack('honest', 'start');
  const post = (who, body, query = '', options = {}) => server.request('POST', `/traces/${id}/events?producer=${ids[who]}${query}`, { body, ...options });
  const told = await lie({ server, id, ids, streams, sync, ack, post, now });
  const events = Array.from({ length: HONEST }, (_, i) => at(now + i, `h-${i}`));
  assert.equal((await post('honest', events, '&seq=1')).status, 200);
  await server.expect('POST', `/traces/${id}/stop`, [202]);
  for (const who of ['honest', 'liar']) {
    await sync(who);
    await ack(who, 'stop');
  }
  const trace = await server.waitFinal(id);
  const download = await server.downloadChrome(id);
  const mine = eventsOf(download).filter((e) => e.name.startsWith('h-'));
  // What is honest is all there, at its time, whatever the liar did.
  assert.equal(mine.length, HONEST);
  const base = Number(BigInt(download.baseTimeNanoseconds) / 1000000n);
  assert.ok(Math.abs(base - now) < 2 * 7889238 * 1000, `base ${download.baseTimeNanoseconds}`);
  assert.ok(mine.every((e) => Math.abs(base + e.ts / 1000 - now) < HONEST + 1));
  const of = (name) => trace.streams.find((s) => s.producer === name) ?? trace.streams.find((s) => s.producer?.name === name);
  assert.equal(of('honest').counts.stored, HONEST);
  assert.equal(of('honest').counts.dropped, 0);
  const { emitted, stored, filtered, dropped } = trace.counts;
  assert.equal(emitted, stored + filtered + dropped);
  return { trace, told, others: eventsOf(download).filter((e) => !e.name.startsWith('h-')) };
}

test('a batch for the stream of another, of other packets or in broken frames', async (t) => {
  const { trace, told } = await traceWithLiar(t, async ({ streams, post }) => {
    const bodies = [head(streams.honest, 0), head(streams.liar, 7), head(streams.liar, 0).subarray(0, 40),
      Buffer.concat([head(streams.liar, 1), Buffer.from([0x0a, 0x7f, 0x08])]), Buffer.from('\xff\xff\xff\xff\xff\xff\xff\xff', 'latin1')];
    const kinds = [];
    for (const [i, body] of bodies.entries()) {
      const r = await post('liar', body, `&seq=${i + 1}`, { headers: PACKETS });
      assert.equal(r.status, 400, `body ${i}: ${r.status} ${r.body}`);
      kinds.push(r.json().detail);
    }
    // Packets that are no events: a kind that this trace has no use for.
    const other = await post('liar', Buffer.from([0x0a, 0x04, 0xa2, 0x06, 0x01, 0x00]), '&seq=9', { headers: PACKETS });
    return { kinds, other: other.status };
  });
  assert.match(told.kinds[0], /for stream \d+, but its producer writes stream \d+/);
  assert.ok([200, 400].includes(told.other));
  assert.match(trace.matched.find((m) => m.name === 'liar').reason, /5 batches were refused: /);
});

test('events of another age are left out, and do not move the others', async (t) => {
  const { trace, others } = await traceWithLiar(t, async ({ post, now }) => {
    const events = [{ ...at(0, 'first'), ts: 5 }, { ...at(0, 'negative'), ts: -5 }, at(now + 40 * 86400e3, 'later'), at(now, 'good'), { ...at(0, 'none'), ts: 1e30 }];
    assert.equal((await post('liar', events, '&seq=1')).status, 200);
  });
  assert.deepEqual(others.map((e) => e.name), ['good']);
  assert.equal(trace.outcome, 'lossy');
  assert.deepEqual(trace.counts.dropped_by_cause, { 'before-start': 2, 'after-stop': 1, malformed: 1 });
  assert.match(trace.reason, /4 events dropped/);
});

test('types outside of the filter are filtered, and a repeat adds nothing', async (t) => {
  const { trace, others } = await traceWithLiar(t, async ({ post, now }) => {
    const events = ['lie.B', 'nobody.Z', '233', 'lie.A'].map((cat) => at(now, `of ${cat}`, { cat }));
    for (const seq of [1, 3, 3, 1]) assert.equal((await post('liar', seq === 1 ? events : [at(now, `seq ${seq}`)], `&seq=${seq}`)).status, 200);
  }, { include: ['lie.A'] });
  assert.deepEqual(others.map((e) => e.name).sort(), ['of lie.A', 'seq 3']);
  assert.equal(trace.counts.filtered, 3);
  const liar = trace.streams.find((s) => s.counts.stored === 2);
  assert.deepEqual([liar.batches, liar.duplicate_batches], [2, 2]);
});

test('counts, starts and acks that cannot be', async (t) => {
  const { trace } = await traceWithLiar(t, async ({ id, sync, ack, post, now }) => {
    await ack('liar', 'start', { started_at: '1970-01-01T00:00:01Z' });
    await post('liar', [at(now, 'one')], '&seq=1');
    await sync('liar', { counts: [{ trace_id: id, emitted: 100, dropped: { 'producer-ring-full': 90 } }] });
    await sync('liar', { counts: [{ trace_id: id, emitted: 3 }] });
    await sync('liar', { step: 1e15 });
  });
  assert.equal(trace.outcome, 'lossy');
  assert.equal(trace.counts.dropped_by_cause['producer-ring-full'], 90);
  assert.equal(trace.counts.dropped_by_cause['producer-lost'], 9);
  assert.match(trace.matched.find((m) => m.name === 'liar').reason, /what it counted first is kept/);
  assert.ok((trace.skew_ns ?? 0) < 60e9, `skew ${trace.skew_ns}`);
});
