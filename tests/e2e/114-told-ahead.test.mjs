// A held sync that asks for it hears of a start in an interim answer, before the answer itself.
import assert from 'node:assert/strict';
import net from 'node:net';
import test from 'node:test';
import { raw, request } from './lib/raw.mjs';
import { serve } from './lib/server.mjs';

const HEADERS = ['Host: 127.0.0.1', 'Content-Type: application/json'];

// Hold a sync as bytes, and create a trace when the service holds it.
async function holdOver(server, id, body, { version = '1.1', trace = {} } = {}) {
  const text = JSON.stringify(body);
  const bytes = request('POST', `/producers/${id}/sync`, [...HEADERS, `Content-Length: ${text.length}`], text);
  const held = raw(server.port, Buffer.from(bytes.toString('latin1').replace('HTTP/1.1', `HTTP/${version}`), 'latin1'));
  for (let i = 0; (await server.get(`/producers/${id}`)).json().step !== body.step; i++) {
    assert.ok(i < 3000, 'the sync did not come');
    await new Promise((r) => setTimeout(r, 10));
  }
  return [await server.createTrace(trace), await held];
}

async function join(server) {
  const { id } = (await server.post('/producers', { name: 'by hand', rank: 0 })).json();
  await server.post(`/producers/${id}/sync`, { wait_ms: 0 });
  return id;
}

test('a start is told ahead of the answer, which says the same', async (t) => {
  const server = await serve(t);
  const id = await join(server);
  const [trace, { text, replies }] = await holdOver(server, id, { step: 1, wait_ms: 20000, interim: true });
  assert.match(text, /^HTTP\/1\.1 103 Early Hints\r\nTraceplane-Sync: \{.*\}\r\n\r\nHTTP\/1\.1 200 /);
  const ahead = JSON.parse(/Traceplane-Sync: (.*)\r\n/.exec(text)[1]);
  const answer = JSON.parse(replies[0].body);
  assert.deepEqual(ahead.commands.map((c) => c.command), ['prepare', 'start']);
  assert.deepEqual(ahead.commands, answer.commands);
  assert.equal(ahead.commands[0].trace_id, trace.id);
  assert.ok(ahead.server_sent_at <= answer.server_sent_at);
  await server.post(`/traces/${trace.id}/cancel`);
});

test('who does not ask, speaks HTTP/1.0, or has no start to hear of, gets the answer alone', async (t) => {
  const server = await serve(t);
  const id = await join(server);
  const cases = [
    [{ step: 1, wait_ms: 20000 }, {}],
    [{ step: 2, wait_ms: 20000, interim: true }, { version: '1.0' }],
    [{ step: 3, wait_ms: 20000, interim: true }, { trace: { start: { when: 'manual' } } }],
  ];
  for (const [body, how] of cases) {
    const [trace, { text, replies }] = await holdOver(server, id, body, how);
    assert.match(text, /^HTTP\/1\.. 200 /, JSON.stringify(body));
    assert.equal(JSON.parse(replies[0].body).commands[0].command, 'prepare');
    await server.post(`/traces/${trace.id}/cancel`);
    await server.post(`/producers/${id}/sync`, { wait_ms: 0, acks: [{ trace_id: trace.id, command: 'cancel' }] });
  }
});

// A start is told before the maker of a trace is, who may be gone by then.
test('who makes a trace and leaves is noted', async (t) => {
  const server = await serve(t);
  for (let rank = 0; rank < 64; rank++) { // they do not ask again, so that the maker waits for the start
    const { id } = (await server.post('/producers', { name: 'by hand', rank })).json();
    await server.post(`/producers/${id}/sync`, { wait_ms: 0 });
  }
  const make = (job) => request('POST', '/traces', [...HEADERS, `Content-Length: ${job.length}`], job);
  const socket = net.connect(server.port, '127.0.0.1', () => { socket.write(make('{"label":"gone"}')); });
  const made = async () => (await server.get('/traces?state=active')).json().items[0];
  for (let i = 0; (await made()) === undefined; i++) {
    assert.ok(i < 3000, 'no trace was made');
    await new Promise((r) => setTimeout(r, 10));
  }
  socket.destroy();
  const { id: gone } = await made();
  for (let i = 0; !server.log.split('\n').some((l) => /event=audit/.test(l) && /createTrace/.test(l) && l.includes(gone)); i++) {
    assert.ok(i < 3000, `no line tells who made it: ${server.log}`);
    await new Promise((r) => setTimeout(r, 10));
  }
});

test('a value that is no boolean is refused', async (t) => {
  const server = await serve(t);
  const id = await join(server);
  const refused = await server.post(`/producers/${id}/sync`, { wait_ms: 0, interim: 'yes' });
  assert.equal(refused.status, 400);
  assert.match(refused.json().detail, /interim/);
});
