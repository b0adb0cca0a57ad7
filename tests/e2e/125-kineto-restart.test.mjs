// A service that is killed while processes have a request or record collects their files when it is back, whatever it had
// written down by then.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { assertNobodyDied, asUser, clients, foldersOf, producers, serveKineto, until } from './lib/kineto.mjs';
import { temporaryFolder } from './lib/server.mjs';

// With seconds to spare for a busy machine; and `early` processes do not miss their start.
const inTime = (ms = 8000) => ({ start: { at: new Date(Date.now() + ms).toISOString() }, stop: { duration_ms: 500 }, kineto: { warmup_ms: 1000 } });

// A service and a process whose rhythm is known, and a way to kill the service and to start it again.
async function scene(t, knobs) {
  const dataDir = temporaryFolder();
  t.after(() => fs.rmSync(dataDir, { recursive: true, force: true }));
  const first = await serveKineto(t, { dataDir });
  const c = clients(t, first, { 'interval-ms': 1000, ...knobs });
  await producers(first, 1);
  await until('its rhythm is known', () => c.of('poll').length >= 3);
  const again = async () => serveKineto(t, { dataDir, kineto: first.kineto });
  return { first, c, again };
}

const stateOf = async (server, id) => (await server.get(`/traces/${id}`)).json().matched[0]?.state;

async function assertComplete(server, id, c) {
  const end = await server.waitFinal(id);
  assert.equal(end.outcome, 'complete', JSON.stringify([end.reason, end.matched]));
  assert.equal(end.counts.stored, 11);
  await until('its folder is removed', () => fs.readdirSync(server.kineto.traceDir, { recursive: true }).every((f) => !f.includes(id)));
  assertNobodyDied(c);
}

test('killed between the order and the file', async (t) => {
  const { first, c, again } = await scene(t, { 'process-ms': 3000 });
  const trace = await first.createTrace({ stop: { duration_ms: 500 }, kineto: { warmup_ms: 1000 } });
  await until('it records', () => c.of('recording').length > 0);
  await new Promise((r) => setTimeout(r, 1200)); // what has changed is written once a second
  await first.kill();
  await assertComplete(await again(), trace.id, c);
});

test('killed when it is armed, before that is written', async (t) => {
  const { first, c, again } = await scene(t, { early: 1 });
  const trace = await first.createTrace(inTime());
  await until('it is armed', async () => (await stateOf(first, trace.id)) === 'armed');
  await first.kill();
  await assertComplete(await again(), trace.id, c);
});

// The start that was planned passes while nobody is there to tell it.
test('killed before its request: told afterwards, with a later start', async (t) => {
  const { first, c, again } = await scene(t, { early: 1 });
  const trace = await first.createTrace({ stop: { duration_ms: 500 }, kineto: { warmup_ms: 1000 } });
  await first.kill();
  assert.deepEqual(c.of('accepted'), []);
  await until('the planned start has passed', () => Date.now() > Date.parse(trace.start_at));
  const second = await again();
  const moved = (await second.get(`/traces/${trace.id}`)).json();
  assert.equal(moved.matched[0].reason, 'the service restarted: its start was moved');
  assert.ok(Date.parse(moved.start_at) > Date.now() + 2000);
  await assertComplete(second, trace.id, c);
});

test('killed while it waits for its order', async (t) => {
  const { first, c, again } = await scene(t, { early: 1 });
  const trace = await first.createTrace(inTime(20000));
  assert.equal(await stateOf(first, trace.id), 'waiting');
  await first.kill();
  await assertComplete(await again(), trace.id, c);
});

test('killed, and its process has ended meanwhile', async (t) => {
  const { first, c, again } = await scene(t, { early: 1, 'ends-with-file': 1 });
  const trace = await first.createTrace(inTime());
  await until('it is armed', async () => (await stateOf(first, trace.id)) === 'armed');
  await first.kill();
  await c.ended;
  await assertComplete(await again(), trace.id, c);
});

// Nothing about the folder tells whose it is: everybody may write into it.
test('a service that is not root, killed, and the process of another user has ended', { skip: process.getuid() !== 0 && 'needs root to be two other users' }, async (t) => {
  const dir = foldersOf(t, 65533);
  const options = { dataDir: `${dir}/data`, args: ['--kineto-allow-uid', '65534'], through: asUser(65533), kineto: { name: `tp-e2e-${process.pid}-user`, traceDir: `${dir}/files` } };
  const first = await serveKineto(t, options);
  const c = clients(t, first, { 'interval-ms': 1000, early: 1, 'ends-with-file': 1, uid: 65534 });
  await producers(first, 1);
  await until('its rhythm is known', () => c.of('poll').length >= 3);
  const trace = await first.createTrace(inTime());
  await until('it is armed', async () => (await stateOf(first, trace.id)) === 'armed');
  await first.kill();
  await c.ended;
  await assertComplete(await serveKineto(t, options), trace.id, c);
});
