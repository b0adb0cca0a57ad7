// A service that is killed while processes have a request or record collects their files when it is back, whatever it had
// written down by then.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test, { describe } from 'node:test';
import { assertNobodyDied, asUser, clients, foldersOf, missed, producers, serveKineto, until, wasKept } from './lib/kineto.mjs';
import { temporaryFolder } from './lib/server.mjs';

// With seconds to spare for a busy machine; and `early` processes do not miss their start.
const inTime = (ms = 8000) => ({ start: { at: new Date(Date.now() + ms).toISOString() }, stop: { duration_ms: 500 }, kineto: { warmup_ms: 1000 } });

const TRIES = 4;

// A service and a process whose rhythm is known, and a way to start the service again.
async function scene(t, knobs, options) {
  const first = await serveKineto(t, options);
  const c = clients(t, first, { 'interval-ms': 1000, ...knobs });
  await producers(first, 1);
  await until('its rhythm is known', () => c.of('poll').length >= 3);
  const again = async () => serveKineto(t, { ...options, kineto: first.kineto });
  return { first, c, again };
}

// What a test is about did not come about.
class Again extends Error {}

// A test in such a scene. A process that missed its start, or was not told in time when nobody got a turn, has no file to be
// collected: then, too, all is done anew.
const tests = [];
function killed(name, knobs, act, { skip = false, folders = (t) => ({ dataDir: removed(t, temporaryFolder()) }) } = {}) {
  tests.push(() => test(name, { skip }, async (t) => {
    for (let i = 1; ; i++) {
      const s = await scene(t, knobs, folders(t));
      try {
        return await act(s);
      } catch (e) {
        if (i === TRIES || !(e instanceof Again || missed(s.c) || wasKept(s.c, 1000))) throw e;
        t.diagnostic(`once more: ${e.message}`);
      }
      await s.c.stop();
    }
  }));
}

function removed(t, folder) {
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const stateOf = async (server, id) => (await server.get(`/traces/${id}`)).json().matched[0]?.state;

async function assertComplete(server, id, c) {
  const end = await server.waitFinal(id);
  assert.equal(end.outcome, 'complete', JSON.stringify([end.reason, end.matched]));
  assert.equal(end.counts.stored, 11);
  await until('its folder is removed', () => fs.readdirSync(server.kineto.traceDir, { recursive: true }).every((f) => !f.includes(id)));
  assertNobodyDied(c);
}

killed('killed between the order and the file', { 'process-ms': 3000 }, async ({ first, c, again }) => {
  const trace = await first.createTrace({ stop: { duration_ms: 500 }, kineto: { warmup_ms: 1000 } });
  const isOver = async () => ['refused', 'lost'].includes(await stateOf(first, trace.id));
  await until('it records, or never will', async () => c.of('recording').length > 0 || missed(c) || isOver());
  if (c.of('recording').length === 0) throw new Again('it missed its start');
  await new Promise((r) => setTimeout(r, 1200)); // what has changed is written once a second; not written is fine, too
  await first.kill();
  await assertComplete(await again(), trace.id, c);
});

const isArmed = (server, id) => until('it is armed', async () => (await stateOf(server, id)) === 'armed');

killed('killed when it is armed, before that is written', { early: 1 }, async ({ first, c, again }) => {
  const trace = await first.createTrace(inTime());
  await isArmed(first, trace.id);
  await first.kill();
  await assertComplete(await again(), trace.id, c);
});

// The start that was planned passes while nobody is there to tell it.
killed('killed before its request: told afterwards, with a later start', { early: 1 }, async ({ first, c, again }) => {
  const trace = await first.createTrace({ stop: { duration_ms: 500 }, kineto: { warmup_ms: 1000 } });
  await first.kill();
  if (c.of('accepted').length > 0) throw new Again('it was told before');
  await until('the planned start has passed', () => Date.now() > Date.parse(trace.start_at));
  const second = await again();
  const moved = (await second.get(`/traces/${trace.id}`)).json();
  assert.equal(moved.matched[0].reason, 'the service restarted: its start was moved');
  assert.ok(Date.parse(moved.start_at) > Date.parse(trace.start_at));
  await assertComplete(second, trace.id, c);
});

killed('killed while it waits for its order', { early: 1 }, async ({ first, c, again }) => {
  const trace = await first.createTrace(inTime(20000));
  assert.equal(await stateOf(first, trace.id), 'waiting');
  await first.kill();
  await assertComplete(await again(), trace.id, c);
});

killed('killed, and its process has ended meanwhile', { early: 1, 'ends-with-file': 1 }, async ({ first, c, again }) => {
  const trace = await first.createTrace(inTime());
  await isArmed(first, trace.id);
  await first.kill();
  await c.ended;
  await assertComplete(await again(), trace.id, c);
});

// Nothing about the folder tells whose it is: everybody may write into it.
function foldersOf65533(t) {
  const dir = foldersOf(t, 65533);
  return { dataDir: `${dir}/data`, args: ['--kineto-allow-uid', '65534'], through: asUser(65533), kineto: { name: `tp-e2e-${path.basename(dir)}`, traceDir: `${dir}/files` } };
}

killed('a service that is not root, killed, and the process of another user has ended', { early: 1, 'ends-with-file': 1, uid: 65534 }, async ({ first, c, again }) => {
  const trace = await first.createTrace(inTime());
  await isArmed(first, trace.id);
  await first.kill();
  await c.ended;
  await assertComplete(await again(), trace.id, c);
}, { skip: process.getuid() !== 0 && 'needs root to be two other users', folders: foldersOf65533 });

// Side by side: each of them waits, most of the time, for the rhythm of its process.
describe('a service is killed', { concurrency: true }, () => tests.forEach((add) => add()));
