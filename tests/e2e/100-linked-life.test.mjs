// A program that is linked with the library: registered, recorded, exact to the event, gone.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { ENDS_LATE, firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { serve } from './lib/server.mjs';

test('what it records while a trace runs is in the trace, and nothing else', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 3, env: { TRACEPLANE_WORLD_SIZE: '8', TRACEPLANE_BACKEND: 'ascend', TRACEPLANE_DEVICE: 'npu:3' } });
  const [known] = (await server.get('/producers')).json().items;
  assert.deepEqual([known.name, known.kind, known.rank, known.world_size, known.pid], ['rank-3', 'native', 3, 8, p.pid]);
  assert.equal((await server.get('/types/e2e.WORK')).json().id, 50 + ((await server.get('/types/e2e.WORK')).json().hash % 205));
  await p.tell('slices 5');
  const trace = await server.createTrace();
  await p.tell('wait 100000');
  await p.tell('slices 1000');
  assert.equal((await p.tell('flush 100000')).rc, 0);
  const live = await server.downloadChrome(trace.id);
  assert.equal(eventsOf(live).filter((e) => e.cat === 'e2e.WORK').length, 1000, 'a flush brings all to the service');
  const end = await server.stopTrace(trace.id);
  await p.until((s) => !s.isOn, 'off');
  await p.tell('slices 5');
  assert.equal(end.outcome, 'complete', end.reason);
  const numbers = numbersOf(await server.downloadChrome(trace.id)).get(`${p.pid}/100`);
  assert.deepEqual([numbers.length, numbers[0], firstBreak(numbers)], [1000, 5, undefined]);
});

test('it is recorded again and again, and leaves when it ends', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0, env: ENDS_LATE });
  for (let i = 0; i < 5; i++) {
    const trace = await server.createTrace();
    await p.recording();
    await p.tell(`slices ${i}`);
    const end = await server.stopTrace(trace.id);
    assert.equal(eventsOf(await server.downloadChrome(trace.id)).filter((e) => e.cat === 'e2e.WORK').length, i);
    assert.equal(end.outcome, i === 0 ? 'empty' : 'complete', end.reason);
    await p.until((s) => !s.isOn, 'off');
  }
  assert.equal((await p.end()).code, 0);
  assert.deepEqual((await server.get('/producers')).json().items, []);
});

test('a new type is known at once here, and to the service when the trace is over', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0 });
  const trace = await server.createTrace();
  await p.tell('wait 100000');
  const { rc, id } = await p.tell('type NEW');
  assert.equal(rc, 0);
  assert.equal((await server.get('/types/e2e.NEW')).status, 404);
  await server.stopTrace(trace.id);
  for (let i = 0; (await server.get('/types/e2e.NEW')).status !== 200; i++) {
    assert.ok(i < 3000, 'the type did not come');
    await new Promise((r) => setTimeout(r, 20));
  }
  assert.equal((await server.get('/types/e2e.NEW')).json().id, id);
});

test('a cancel leaves nothing on', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0 });
  const trace = await server.createTrace();
  await p.tell('wait 100000');
  await p.tell('slices 10');
  await server.expect('POST', `/traces/${trace.id}/cancel`, [202]);
  await p.until((s) => !s.isOn && s.waiting === 0, 'off');
});

test('a trace starts at a step and lasts for some', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0 });
  await p.tell('step 3');
  const trace = await server.createTrace({ start: { step: 20 }, stop: { steps: 10 } });
  await p.tell('step 10');
  assert.equal((await p.tell('stats')).isOn, false, 'before its step');
  await p.tell('step 500');
  const end = await server.waitFinal(trace.id);
  const numbers = numbersOf(await server.downloadChrome(trace.id)).get(`${p.pid}/100`);
  assert.ok(numbers[0] >= 20, `it begins with step ${numbers[0]}`);
  assert.equal(firstBreak(numbers), undefined);
  assert.deepEqual([numbers[0], numbers.length], [20, 10], `${end.outcome}: ${end.reason}`);
  assert.equal(end.outcome, 'complete', end.reason);
});

test('ranks that run apart record the same steps', async (t) => {
  const server = await serve(t);
  const ranks = await Promise.all([0, 1, 2].map((rank) => startLinked(t, server, { rank, env: { TRACEPLANE_WORLD_SIZE: '3' } })));
  const idle = await startLinked(t, server, { rank: 3 });
  for (const p of ranks) await p.tell('step 3');
  const trace = await server.createTrace({ start: { step: 30 }, stop: { steps: 5 } });
  const view = async () => (await server.get(`/traces/${trace.id}`)).json();
  for (let i = 0; i < 3000 && (await view()).matched.some((p) => p.state !== 'armed'); i++) await new Promise((r) => setTimeout(r, 20));
  await ranks[0].tell('step 60');
  await ranks[1].tell('step 20');
  await idle.recording();
  assert.equal((await ranks[1].tell('stats')).isOn, false, 'before its step');
  assert.equal((await view()).state, 'recording', 'two ranks are behind');
  await ranks[1].tell('step 40');
  await ranks[2].tell('step 60');
  const end = await server.waitFinal(trace.id);
  assert.match(end.history.at(-2).cause, /5 steps are recorded/);
  const found = numbersOf(await server.downloadChrome(trace.id));
  for (const p of ranks) assert.deepEqual(found.get(`${p.pid}/100`), [30, 31, 32, 33, 34], `rank ${ranks.indexOf(p)}`);
});

test('one that has done its steps is not taken for lost while another is far behind', async (t) => {
  const server = await serve(t);
  const [ahead, behind] = await Promise.all([0, 1].map((rank) => startLinked(t, server, { rank, args: ['--threads', '0'] })));
  for (const p of [ahead, behind]) await p.tell('step 1');
  const trace = await server.createTrace({ start: { step: 3 }, stop: { steps: 2 } });
  const states = async () => (await server.get(`/traces/${trace.id}`)).json().matched.map((m) => m.state);
  for (let i = 0; i < 3000 && (await states()).some((s) => s !== 'armed'); i++) await new Promise((r) => setTimeout(r, 20));
  await ahead.tell('step 6');
  await behind.tell('step 2');
  await new Promise((r) => setTimeout(r, 13000)); // its heartbeat is 10 s
  assert.deepEqual(await states(), ['recording', 'recording']);
  await behind.tell('step 4');
  const end = await server.waitFinal(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  const found = numbersOf(await server.downloadChrome(trace.id));
  for (const p of [ahead, behind]) assert.deepEqual(found.get(`${p.pid}/100`), [3, 4]);
});
