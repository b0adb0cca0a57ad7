// Requests made from the document, right, wrong and broken: never a failure of the server, never a refusal without a problem.
import assert from 'node:assert/strict';
import test from 'node:test';
import { loadContract, resolve, seeByChance } from './lib/contract.mjs';
import { slices } from './lib/events.mjs';
import { sample, scramble, spoil } from './lib/generate.mjs';
import { Random, seedOf } from './lib/random.mjs';
import { pick, serve } from './lib/server.mjs';

const ROUNDS = pick(4000, 800);

// What stands for {id} and {type}: things that are there, and things that are not.
async function ids(server) {
  await server.registerTypes(['ascend.KERNEL']);
  const done = await server.createTrace({ job: 'done' });
  await server.events(done.id, slices(5));
  await server.stopTrace(done.id);
  const live = await server.createTrace({ job: 'live', start: { when: 'manual' } });
  const producer = (await server.expect('POST', '/producers', [201], { body: { name: 'p' } })).json();
  return [done.id, done.id, live.id, live.id, producer.id, '154', 'ascend.KERNEL', 'nowhere', '%00', '%ff', '..', '%2e%2e%2f', 'x'.repeat(500), '-1'];
}

function target(op, random, known) {
  const path = op.path.replace(/\{[^}]+\}/g, () => random.pick(known));
  const params = [...(op.operation.parameters ?? []), ...(op.item.parameters ?? [])].map(resolve).filter((p) => p.in === 'query' && random.chance(0.3));
  if (random.chance(0.05)) params.push({ name: 'nonsense', schema: {} });
  const query = params.map((p) => `${p.name}=${encodeURIComponent([sample(p.schema, random)].flat().map((x) => String(x).toWellFormed?.() ?? String(x).replace(/[\ud800-\udfff]/g, '')).join(','))}`).join('&');
  return path + (query && `?${query}`);
}

function body(op, random) {
  const content = resolve(op.operation.requestBody)?.content;
  if (!content) return random.chance(0.05) ? { body: Buffer.from('{}') } : {};
  const type = random.chance(0.9) ? random.pick(Object.keys(content)) : random.pick(['text/plain', 'application/json', 'x']);
  const schema = content[type]?.schema ?? {};
  const value = random.chance(0.5) ? sample(schema, random) : spoil(sample(schema, random), random);
  const text = JSON.stringify(value) ?? '';
  return { body: random.chance(0.25) ? scramble(text, random) : Buffer.from(text), headers: { 'content-type': type } };
}

test('every operation refuses a parameter that it does not have', async (t) => {
  const server = await serve(t);
  for (const op of loadContract().operations) {
    const problem = await server.problem(op.method, `${op.path.replace(/\{[^}]+\}/g, '154')}?nonsense=1`, 400, 'unknown-parameter');
    assert.match(problem.detail, /nonsense/, op.id);
  }
});

test('every operation on something that is not there says so', async (t) => {
  const server = await serve(t);
  for (const op of loadContract().operations.filter((o) => o.path.includes('{'))) {
    const content = resolve(op.operation.requestBody)?.content;
    await server.problem(op.method, op.path.replace(/\{[^}]+\}/g, 'nowhere'), 404, 'not-found', content && { body: '{}', headers: { 'content-type': 'application/json' } });
  }
});

test('every operation with a body refuses what it does not read', async (t) => {
  const server = await serve(t);
  const live = await server.createTrace({});
  const producer = (await server.expect('POST', '/producers', [201], { body: { name: 'p' } })).json();
  for (const op of loadContract().operations.filter((o) => resolve(o.operation.requestBody)?.content)) {
    const where = op.path.replace(/\{[^}]+\}/g, op.path.startsWith('/traces') ? live.id : producer.id);
    await server.problem(op.method, where, 415, 'unsupported-media-type', { body: 'x', headers: { 'content-type': 'image/png' } });
  }
});

test('no request of thousands breaks the server or the document', async (t) => {
  const random = new Random(seedOf(t));
  const server = await serve(t);
  const known = await ids(server);
  seeByChance();
  const operations = loadContract().operations.filter((o) => !['watchTrace', 'syncProducer'].includes(o.id));
  const sync = loadContract().operations.find((o) => o.id === 'syncProducer');
  const seen = {};
  for (let i = 0; i < ROUNDS; i++) {
    const op = random.chance(0.05) ? sync : random.pick(operations);
    const sent = body(op, random);
    if (op === sync) sent.body = Buffer.from(JSON.stringify({ wait_ms: 0, ...(random.chance(0.5) && { acks: spoil([], random) }) }));
    const where = target(op, random, known);
    const r = await server.request(op.method, where, sent);
    const what = `${op.method} ${where} ${sent.body?.toString('latin1').slice(0, 300)} -> ${r.status} ${r.body.toString('latin1').slice(0, 300)}`;
    assert.ok(r.status < 500, what);
    if (r.status >= 400) assert.match(String(r.headers['content-type']), /^application\/problem\+json/, what);
    seen[r.status] = (seen[r.status] ?? 0) + 1;
  }
  t.diagnostic(`statuses: ${JSON.stringify(seen)}`);
  await server.expect('GET', '/healthz', [200]);
  await server.expect('GET', '/readyz', [200]);
});
