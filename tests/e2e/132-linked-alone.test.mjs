// A linked program whose service has gone in the middle of a trace ends the trace by itself.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import test from 'node:test';
import { checkConservation } from './lib/conserved.mjs';
import { firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { serve } from './lib/server.mjs';

const again = (t, before) => serve(t, { dataDir: before.dataDir, args: ['--listen', `127.0.0.1:${before.port}`] });

async function recording(t) {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0 });
  await server.createTrace();
  await p.recording();
  return { server, p };
}

// A program that has recorded into a trace of so long, and records on when its service is killed; null when the trace was
// over by then.
async function leftAlone(t, ms) {
  const server = await serve(t);
  const p = await startLinked(t, server, { rank: 0 });
  const { id } = await server.createTrace({ stop: { duration_ms: ms } });
  const isActive = async () => ['prepared', 'recording'].includes((await server.get(`/traces/${id}`)).json().state);
  const isOn = (s) => s.isRecording && s.isOn;
  while (!isOn(await p.tell('stats')) && await isActive());
  await p.tell('slices 2000');
  await server.kill();
  if (isOn(await p.tell('stats'))) return { before: server, p, id };
  await p.kill();
  return null;
}

test('it ends after the duration of the trace, and a service that is back has all of it', async (t) => {
  let scene = null;
  for (let ms = 1000; scene === null && ms < 100000; ms *= 4) scene = await leftAlone(t, ms); // a busy machine needs longer
  const { before, p, id } = scene;
  await p.until((s) => !s.isRecording, 'not recording any more');
  await p.tell('slices 1000'); // of no trace
  const server = await again(t, before);
  const end = await server.waitFinal(id);
  checkConservation(end);
  assert.equal(end.outcome, 'complete', end.reason);
  const numbers = numbersOf(await server.downloadChrome(id)).get(`${p.pid}/100`);
  assert.equal(numbers.length, 2000);
  assert.equal(firstBreak(numbers), undefined);
});

test('it ends when the service comes back without its data', async (t) => {
  const { server: before, p } = await recording(t);
  await before.kill();
  await rm(before.dataDir, { recursive: true });
  const server = await again(t, before);
  await p.until((s) => s.isRegistered && !s.isRecording, 'registered and not recording');
  const { id } = await server.createTrace();
  await p.recording();
  await p.tell('slices 100');
  const end = await server.stopTrace(id);
  assert.equal(end.outcome, 'complete', end.reason);
  assert.equal(numbersOf(await server.downloadChrome(id)).get(`${p.pid}/100`).length, 100);
});
