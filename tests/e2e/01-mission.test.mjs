// The five lines of curl that the README begins with, on a fresh server.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { curl } from './lib/curl.mjs';
import { serve, temporaryFolder } from './lib/server.mjs';

const EVENTS = { traceEvents: [{ ph: 'X', cat: 'ascend.KERNEL', name: 'matmul', pid: 1, tid: 2, ts: 10, dur: 5, args: { grid: [1, 2] } }] };

async function mission(t, prefix) {
  const server = await serve(t);
  const folder = temporaryFolder();
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const url = `localhost:${server.port}${prefix}`;
  fs.writeFileSync(path.join(folder, 'events.json'), JSON.stringify(EVENTS));

  const type = JSON.parse(await curl(['-sX', 'POST', `${url}/types`, '-d', '{"plugin":"ascend","type_name":"KERNEL"}'], folder));
  assert.equal(type.id, 154);
  assert.equal(type.name, 'ascend.KERNEL');
  const trace = JSON.parse(await curl(['-sX', 'POST', `${url}/traces`, '-d', '{"filter":{"include":["ascend.KERNEL"]}}'], folder));
  assert.equal(trace.state, 'recording');
  const reply = JSON.parse(await curl(['-sX', 'POST', `${url}/traces/${trace.id}/events`, '-d', '@events.json'], folder));
  assert.deepEqual([reply.posted, reply.accepted, reply.filtered, reply.rejected], [1, 1, 0, 0]);
  await curl(['-sX', 'POST', `${url}/traces/${trace.id}/stop`], folder);
  await server.waitFinal(trace.id);
  await curl(['-sOJ', `${url}/traces/${trace.id}/download`], folder);

  const [name] = fs.readdirSync(folder).filter((f) => f !== 'events.json');
  assert.match(name, /^[A-Za-z0-9._-]+\.json$/, 'the name of the file is safe and says what it is');
  const out = JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8'));
  const [event] = out.traceEvents.filter((e) => e.ph === 'X');
  assert.equal(event.name, 'matmul');
  assert.equal(event.cat, 'ascend.KERNEL');
  assert.deepEqual(event.args, { grid: [1, 2] });
  assert.equal(out.traceEvents.filter((e) => e.ph === 'X').length, 1);
  const [custom] = out.customActivityTypes;
  assert.deepEqual([custom.id, custom.plugin, custom.type_name, custom.name], [154, 'ascend', 'KERNEL', 'ascend.KERNEL']);
}

test('the mission works with nothing but curl', (t) => mission(t, ''));
test('the mission works below /v1, too', (t) => mission(t, '/v1'));
