// The service goes away and comes back, with and without warning, while eight programs record.
import assert from 'node:assert/strict';
import test from 'node:test';
import { ENDS_LATE, firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { Server, dataFolder, pick } from './lib/server.mjs';

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// Restart on the same port and data, so that producers find it again.
async function restart(t, server, dataDir, isKilled) {
  const { port } = server;
  if (isKilled) await server.kill();
  else await server.terminate();
  await sleep(300);
  const next = await Server.start({ dataDir, args: ['--listen', `127.0.0.1:${port}`], port });
  t.after(() => next.hasExited || next.kill());
  next.port = port;
  return next;
}

for (const isKilled of [false, true]) {
  test(`a service that is ${isKilled ? 'killed' : 'stopped'} and started again records on: nothing is lost or doubled`, async (t) => {
    const dataDir = dataFolder(t);
    let server = await Server.start({ dataDir });
    t.after(() => server.hasExited || server.kill());
    const all = [];
    for (let rank = 0; rank < 8; rank++) all.push(await startLinked(t, server, { rank, args: ['--threads', '1', '--pause-us', '200'] }));
    const trace = await server.createTrace();
    await Promise.all(all.map((p) => p.recording()));
    for (let i = 0; i < pick(2, 1); i++) {
      await sleep(pick(700, 1500));
      server = await restart(t, server, dataDir, isKilled);
    }
    await sleep(1000);
    const view = (await server.get(`/traces/${trace.id}`)).json();
    assert.equal(view.state, 'recording', view.reason);
    for (const p of all) await p.tell('slices 10');
    // For what producers have kept meanwhile, a stop waits so long and no longer: a busy machine may need more.
    for (const { rc } of await Promise.all(all.map((p) => p.tell('flush 100000')))) assert.equal(rc, 0, 'all is with the service');
    const end = await server.stopTrace(trace.id);
    const found = numbersOf(await server.downloadChrome(trace.id));
    for (const p of all) {
      const numbers = found.get(`${p.pid}/0`);
      assert.equal(firstBreak(numbers), undefined, `rank ${p.pid}: ${end.reason}`);
      assert.equal(found.get(`${p.pid}/100`)?.length, 10, 'the last ones are there');
      const stats = await p.tell('stats');
      assert.equal(stats.backlog + stats.afterStop + stats.refused + stats.ringFull, 0, JSON.stringify(stats));
    }
    assert.deepEqual(end.matched.map((m) => m.state), Array(8).fill('done'));
    assert.equal(end.outcome, 'complete', end.reason);
  });
}

test('who joined a trace just before the service was killed writes to the same stream afterwards', async (t) => {
  const dataDir = dataFolder(t);
  let server = await Server.start({ dataDir });
  t.after(() => server.hasExited || server.kill());
  const first = await startLinked(t, server, { rank: 0, args: ['--threads', '0'] });
  const trace = await server.createTrace();
  const all = [first, ...await Promise.all([1, 2, 3, 4, 5, 6, 7].map((rank) => startLinked(t, server, { rank, args: ['--threads', '0'] })))];
  await Promise.all(all.map((p) => p.recording()));
  const streams = (view) => Object.fromEntries(view.matched.map((m) => [m.name, m.stream]));
  const before = (await server.get(`/traces/${trace.id}`)).json();
  server = await restart(t, server, dataDir, true);
  for (const p of all) await p.tell('slices 100');
  for (const { rc } of await Promise.all(all.map((p) => p.tell('flush 100000')))) assert.equal(rc, 0, 'all is with the service');
  const end = await server.stopTrace(trace.id);
  assert.deepEqual(streams(end), streams(before));
  assert.equal(end.outcome, 'complete', end.reason);
  for (const m of end.matched) assert.ok(m.counts.stored >= 100 && m.counts.emitted === m.counts.stored, `${m.name}: ${JSON.stringify(m.counts)}`);
});

test('who ended just before the service was killed is not waited for', async (t) => {
  const dataDir = dataFolder(t);
  let server = await Server.start({ dataDir });
  t.after(() => server.hasExited || server.kill());
  const all = [];
  for (let rank = 0; rank < 2; rank++) all.push(await startLinked(t, server, { rank, args: ['--threads', '0'], env: ENDS_LATE }));
  const trace = await server.createTrace();
  await Promise.all(all.map((p) => p.recording()));
  for (const p of all) await p.tell('slices 100');
  await sleep(2500); // what they said so far is stored
  assert.equal((await all[0].end()).code, 0);
  server = await restart(t, server, dataDir, true);
  const stateOf = (view) => view.matched.find((m) => m.name === 'rank-0').state;
  assert.equal(stateOf((await server.get(`/traces/${trace.id}`)).json()), 'done');
  assert.equal((await all[1].tell('flush 100000')).rc, 0);
  const end = await server.stopTrace(trace.id);
  assert.equal(stateOf(end), 'done');
  assert.equal(end.outcome, 'complete', end.reason);
});

test('a service that stays away costs a bounded memory, and what is lost is counted', async (t) => {
  const dataDir = dataFolder(t);
  const server = await Server.start({ dataDir });
  t.after(() => server.hasExited || server.kill());
  const p = await startLinked(t, server, { rank: 0, args: ['--threads', '1', '--pause-us', '0'], env: { TRACEPLANE_BACKLOG_BYTES: '1M', TRACEPLANE_RINGS_BYTES_MAX: '4M' } });
  const idle = p.usage();
  await server.createTrace();
  await p.recording();
  await server.kill();
  await p.until((s) => s.backlog > 0, 'dropping');
  await sleep(1000);
  const stats = await p.tell('stats'), { rssKib } = p.usage();
  // A ring of 1 MiB, what waits (a third more than 1 MiB), three batches (backlog.h), and what requests take.
  const mostKib = 1024 * (1 + 4 / 3 + 3 * 17 / 16 + 1);
  assert.ok(rssKib < idle.rssKib + pick(mostKib, 400000), `${idle.rssKib} KiB became ${rssKib}`);
  assert.equal(stats.emitted, stats.sent + stats.waiting + stats.filtered + stats.ringFull + stats.backlog + stats.afterStop + stats.refused, JSON.stringify(stats));
  const { code, ms } = await p.end();
  assert.equal(code, 0);
  assert.ok(ms < pick(15000, 100000), `the exit took ${ms} ms`);
});

test('a service that stays away costs no more memory for many small batches than for their events', async (t) => {
  const server = await Server.start({ dataDir: dataFolder(t) });
  t.after(() => server.hasExited || server.kill());
  const p = await startLinked(t, server, { rank: 0, args: ['--threads', '0'], env: { TRACEPLANE_FLUSH_MS: '100' } });
  await server.createTrace();
  await p.recording();
  await p.tell('slices 10');
  assert.equal((await p.tell('flush 100000')).rc, 0);
  const before = p.usage();
  await server.kill();
  for (let i = 0; i < 200; i++) {
    await p.tell('slices 10');
    await p.tell('flush 5'); // is in vain, but makes a batch
  }
  const after = p.usage();
  assert.equal((await p.tell('stats')).waiting, 2000);
  assert.ok(after.askedKib < before.askedKib + pick(16384, 400000), `${before.askedKib} KiB became ${after.askedKib}`);
});
