// Starts by time and step, stops by duration, bytes and steps, caps that are echoed.
import assert from 'node:assert/strict';
import test from 'node:test';
import { slices } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

const causeOf = (trace, state) => trace.history.find((h) => h.state === state).cause;

test('a trace starts at its time', async (t) => {
  const server = await serve(t);
  let trace, at;
  for (let ms = 400; ; ms *= 4) { // until it is made before that, which a busy machine may need several tries for
    at = new Date(Date.now() + ms).toISOString().replace('Z', '000000Z');
    trace = await server.createTrace({ start: { at } });
    if (trace.created_at < at || ms > 100000) break;
    await server.stopTrace(trace.id);
  }
  assert.equal(trace.state, 'prepared');
  assert.equal(trace.start.at, at);
  let now = trace;
  while (now.state === 'prepared') now = (await server.expect('GET', `/traces/${trace.id}`, [200])).json();
  assert.equal(now.state, 'recording');
  assert.ok(now.started_at >= at, `${now.started_at} is before ${at}`);
});

test('a trace stops after its duration, and says so', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  let end;
  for (let duration = 300; ; duration *= 4) { // until the events come before its end
    const trace = await server.createTrace({ stop: { duration_ms: duration } });
    assert.equal(trace.stop.duration_ms, duration);
    assert.equal(trace.stop.duration_capped, false);
    const { status } = await server.post(`/traces/${trace.id}/events`, { traceEvents: slices(3) });
    end = await server.waitFinal(trace.id);
    if (status === 200) break;
    assert.ok(status === 409 && duration < 100000, `${status} after ${duration} ms`);
  }
  assert.equal(end.outcome, 'complete');
  assert.match(causeOf(end, 'stopping'), /duration/);
  assert.ok(Date.parse(end.stopped_at) - Date.parse(end.started_at) >= end.stop.duration_ms - 1);
});

test('a trace that is full stops, and what was acknowledged is in it', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL']);
  const trace = await server.createTrace({ stop: { max_bytes: 200000 } });
  let accepted = 0, refused = null;
  for (let seq = 1; seq <= 200 && refused === null; seq++) {
    const r = await server.request('POST', `/traces/${trace.id}/events?seq=${seq}`, { body: { traceEvents: slices(200, `batch${seq}`) } });
    if (r.status === 200) accepted += r.json().accepted;
    else refused = r.json();
  }
  assert.ok(refused !== null && accepted > 0, `${accepted} accepted`);
  assert.match(refused.type, /limit-exceeded|illegal-state/);
  const end = await server.waitFinal(trace.id);
  assert.match(causeOf(end, 'stopping'), /bytes|full/);
  assert.equal(end.counts.stored, accepted);
  assert.equal((await server.downloadChrome(trace.id)).traceEvents.filter((e) => e.ph === 'X').length, accepted);
});

test('the caps of the server apply and are echoed', async (t) => {
  const server = await serve(t, { args: ['--max-trace-duration-ms', '60000', '--max-trace-bytes', '1M'] });
  const trace = await server.createTrace({ stop: { duration_ms: 3600000, max_bytes: 1 << 30 } });
  assert.deepEqual(trace.stop, { duration_ms: 60000, duration_capped: true, steps: 0, max_bytes: 1 << 20, max_bytes_capped: true });
});

test('a trace starts at a step and stops after some', async (t) => {
  const server = await serve(t);
  const producer = (await server.expect('POST', '/producers', [201], { body: { name: 'p', rank: 0 } })).json();
  const sync = async (body) => (await server.expect('POST', `/producers/${producer.id}/sync`, [200], { body: { wait_ms: 0, ...body } })).json();
  const trace = await server.createTrace({ start: { step: 10 }, stop: { steps: 2 } });
  await sync({ step: 9 });
  const ack = async (command) => sync({ acks: [{ trace_id: trace.id, command }] });
  await ack('prepare');
  assert.equal((await server.get(`/traces/${trace.id}`)).json().state, 'prepared');
  await sync({ step: 10 });
  assert.equal((await server.get(`/traces/${trace.id}`)).json().state, 'recording');
  await ack('start');
  await sync({ step: 12 });
  const after = (await server.get(`/traces/${trace.id}`)).json();
  assert.notEqual(after.state, 'recording', JSON.stringify(after.history));
  assert.match(causeOf(after, 'stopping'), /step/);
  await ack('stop');
  await server.waitFinal(trace.id);
});

test('a trace that nobody starts in time has failed, and says so', async (t) => {
  const server = await serve(t, { args: ['--max-trace-prepared-ms', '200'] });
  const trace = await server.createTrace({ start: { when: 'manual' } });
  const end = await server.waitFinal(trace.id);
  assert.equal(end.state, 'failed');
  assert.match(causeOf(end, 'failed'), /not started|time/);
});
