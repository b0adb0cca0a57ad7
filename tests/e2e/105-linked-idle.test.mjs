// A linked process that is not recorded does nothing but wait; one without a service does not even hurt.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { startLinked } from './lib/linked.mjs';
import { pick, serve, temporaryFolder } from './lib/server.mjs';

// How often the agent's thread went to sleep: each wakeup ends in one more.
function sleepsOfAgent(pid) {
  for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
    const status = fs.readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8');
    if (/^Name:\s+traceplane$/m.test(status)) return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1]);
  }
  throw new Error('there is no thread of the agent');
}

test('an idle program wakes up for its poll only', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0 });
  // What it does once, and a poll that ends early, may come late when the machine stands still: then it is watched anew.
  const wakeups = [];
  while (!wakeups.some((n) => n <= 1) && wakeups.length < 4) {
    await new Promise((r) => setTimeout(r, 1000));
    const before = sleepsOfAgent(p.pid);
    await new Promise((r) => setTimeout(r, pick(26000, 5000)));
    wakeups.push(sleepsOfAgent(p.pid) - before);
  }
  t.diagnostic(`${wakeups} wakeups`);
  assert.ok(Math.min(...wakeups) <= 1, `${wakeups} wakeups`);
});

test('without a service a program runs and ends at once, and says nothing', async (t) => {
  const p = await startLinked(t, 'http://127.0.0.1:1', { waits: false });
  await p.tell('slices 100');
  const stats = await p.tell('stats');
  assert.deepEqual([stats.isRegistered, stats.isOn, stats.emitted], [false, false, 0]);
  const { code, ms } = await p.end();
  assert.equal(code, 0);
  assert.ok(ms < 15000, `the exit took ${ms} ms`);
  assert.equal(p.err, '');
});

test('a service that accepts and never answers does not hold up an exit', async (t) => {
  const silent = net.createServer(() => {});
  await new Promise((r) => silent.listen(0, '127.0.0.1', r));
  t.after(() => silent.close());
  const p = await startLinked(t, `http://127.0.0.1:${silent.address().port}`, { waits: false });
  await p.tell('slices 100');
  const { code, ms } = await p.end();
  assert.equal(code, 0);
  assert.ok(ms < 15000, `the exit took ${ms} ms`);
  assert.equal(p.err, '');
});

test('what is asked for on stderr is one line for each trouble', async (t) => {
  const p = await startLinked(t, 'http://127.0.0.1:1', { waits: false, env: { TRACEPLANE_LOG: '1' } });
  for (let i = 0; i < 3000 && !p.err.includes('\n'); i++) await new Promise((r) => setTimeout(r, 20));
  await new Promise((r) => setTimeout(r, 1500)); // it tries again meanwhile
  assert.match(p.err, /^traceplane\[\d+\]: no answer from http:\/\/127\.0\.0\.1:1: .*\n$/);
});

test('a unix socket serves as well as a port', async (t) => {
  const folder = temporaryFolder(), socket = path.join(folder, 's');
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  const server = await serve(t, { args: ['--listen', `unix:${socket}`] });
  const p = await startLinked(t, `unix:${socket}`, { rank: 0 });
  const trace = await server.createTrace();
  await p.recording();
  await p.tell('slices 100');
  assert.equal((await server.stopTrace(trace.id)).outcome, 'complete');
});
