// A library of before sends the ends of its slices, which that of today leaves out: each slice is there once, whoever
// wrote its end, and the log opens without a service.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { checkConservation } from './lib/conserved.mjs';
import { eventsOf } from './lib/events.mjs';
import { PACKETS, batch } from './lib/native.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { serve } from './lib/server.mjs';

const SLICES = 40;
// Which slices of a batch come with their end.
const forms = { all: () => true, none: () => false, 'all but the first': (i) => i > 0, 'each third': (i) => i % 3 === 2, 'the first': (i) => i === 0 };

// A trace in which a producer has begun to record. post(form) is a batch of its, and wanted what it consists of.
async function record(t) {
  const server = await serve(t);
  const { id: producer } = (await server.expect('POST', '/producers', [200, 201], { body: { name: 'older', kind: 'native' } })).json();
  const { id } = await server.createTrace({});
  const sync = async (command) => (await server.expect('POST', `/producers/${producer}/sync`, [200], { body: { wait_ms: 0, acks: command ? [{ trace_id: id, command }] : [] } })).json();
  const { stream } = (await sync()).commands.find((c) => c.command === 'prepare');
  await sync('prepare');
  await sync('start');
  const wanted = [];
  let seq = 0, ts = BigInt(Date.now()) * 1000000n;
  const post = async (form) => {
    // In pairs, the inner one first, as they end: an end too many or too few would show in the outer one.
    const slices = Array.from({ length: SLICES }, (_, i) => ({ name: `${form} ${i}`, hasEnd: forms[form](i), ...(i % 2 === 0
      ? { ts: (ts += 4000n) + 500n, dur: 100n + BigInt(i) } : { ts, dur: 2000n + BigInt(i) }) }));
    const body = batch(stream, 'cpu_op', { pid: 4000, tid: 4001 }, slices);
    const reply = await server.expect('POST', `/traces/${id}/events?producer=${producer}&seq=${++seq}`, [200], { body, headers: PACKETS });
    assert.equal(reply.json().accepted, SLICES, form);
    wanted.push(...slices.sort((a, b) => Number(a.ts - b.ts)).map((s) => `${s.name} ${s.dur}`));
  };
  return { server, id, sync, post, wanted };
}

async function inTrace(bytes) {
  const judge = await TraceProcessor.load(bytes);
  assert.deepEqual(await judge.errors(), []);
  return (await judge.query('select name, dur from slice order by ts')).map((r) => `${r.name} ${r.dur}`);
}

test('slices with ends, without, and of both kinds in one batch: each is kept once', async (t) => {
  const { server, id, sync, post, wanted } = await record(t);
  for (const form of Object.keys(forms)) await post(form);
  await server.expect('POST', `/traces/${id}/stop`, [202]);
  await sync();
  await sync('stop');
  const trace = await server.waitFinal(id);
  assert.equal(trace.outcome, 'complete', trace.reason);
  checkConservation(trace);
  assert.deepEqual([trace.counts.emitted, trace.counts.stored], [wanted.length, wanted.length]);
  const events = eventsOf(await server.downloadChrome(id)).sort((a, b) => a.ts - b.ts);
  assert.deepEqual(events.map((e) => `${e.name} ${Math.round(e.dur * 1000)}`), wanted);
  assert.deepEqual(await inTrace(await server.download(id, '?format=perfetto')), wanted);
  // The seal, for which downloads wait, has read every batch again and says the same.
  const sealed = await server.waitFinal(id);
  checkConservation(sealed);
  assert.deepEqual(sealed.counts, trace.counts);
});

test('in the log of a service that is gone each slice has its end, whoever sent it', async (t) => {
  const { server, post, wanted } = await record(t);
  for (const form of ['all', 'none', 'all but the first', 'each third']) await post(form);
  await server.kill();
  const log = fs.readdirSync(server.dataDir, { recursive: true }).filter((f) => f.endsWith('.log'));
  assert.equal(log.length, 1);
  assert.deepEqual(await inTrace(fs.readFileSync(path.join(server.dataDir, log[0]))), wanted);
});
