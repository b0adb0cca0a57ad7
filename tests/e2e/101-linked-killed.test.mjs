// kill -9 in the middle of batches: the trace ends, is readable and says who is missing.
import assert from 'node:assert/strict';
import test from 'node:test';
import { ENDS_LATE, firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { pick, serve } from './lib/server.mjs';

test('killed producers leave a readable trace that names them', async (t) => {
  const server = await serve(t, { args: ['--max-producer-silence-ms', '4000'] });
  const busy = { args: ['--threads', '2', '--pause-us', '20'] };
  const all = [];
  for (let rank = 0; rank < 4; rank++) all.push(await startLinked(t, server, { rank, ...busy }));
  const trace = await server.createTrace();
  await Promise.all(all.map((p) => p.recording()));
  await new Promise((r) => setTimeout(r, pick(700, 2000)));
  await Promise.all(all.slice(0, 2).map((p) => p.kill()));
  await new Promise((r) => setTimeout(r, 4500));
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'partial', end.reason);
  const states = Object.fromEntries(end.matched.map((m) => [m.name, m.state]));
  assert.deepEqual(states, { 'rank-0': 'lost', 'rank-1': 'lost', 'rank-2': 'done', 'rank-3': 'done' });
  const found = numbersOf(await server.downloadChrome(trace.id));
  for (const p of all.slice(0, 2))
    for (const thread of [0, 1]) assert.equal(firstBreak(found.get(`${p.pid}/${thread}`) ?? []), undefined, `thread ${thread} of a killed one`);
  assert.ok(found.size >= 4, 'both that live have events');
});

test('one that exits in the middle has sent all it had and is not missed', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0, args: ['--threads', '2', '--pause-us', '100'], env: ENDS_LATE });
  const trace = await server.createTrace();
  await p.recording();
  await p.tell('slices 500');
  assert.equal((await p.end()).code, 0);
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  const found = numbersOf(await server.downloadChrome(trace.id));
  assert.equal(found.get(`${p.pid}/100`).length, 500);
  for (const [thread, numbers] of found) assert.equal(firstBreak(numbers), undefined, thread);
});

test('a rank that is killed and started again joins the running trace with events of its own', async (t) => {
  const server = await serve(t);
  const first = await startLinked(t, server, { rank: 0 });
  const trace = await server.createTrace();
  await first.recording();
  await first.tell('slices 300');
  assert.equal((await first.tell('flush 100000')).rc, 0);
  await first.kill();
  const second = await startLinked(t, server, { rank: 0, env: ENDS_LATE });
  await second.recording();
  await second.tell('slices 200');
  assert.equal((await second.end()).code, 0);
  const stopped = Date.now(), end = await server.stopTrace(trace.id);
  assert.ok(Date.now() - stopped < 40000, 'the killed one is missed after its heartbeat');
  t.diagnostic(`${Date.now() - stopped} ms from stop to ${end.state}, ${end.outcome}: ${end.reason}`);
  const found = numbersOf(await server.downloadChrome(trace.id));
  assert.deepEqual([found.get(`${first.pid}/100`)?.length, found.get(`${second.pid}/100`)?.length], [300, 200]);
});
