// kill -9 at random points: what was acknowledged is there exactly once, nothing is stuck, nothing is made up.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf, slice } from './lib/events.mjs';
import { Random, seedOf } from './lib/random.mjs';
import { Server, dataFolder, pick } from './lib/server.mjs';

const ROUNDS = Number(process.env.TRACEPLANE_KILLS || pick(60, 12)), JOBS = 3;

// What the clients know: types and traces that were acknowledged, and of each trace its batches and what they hold.
class Ledger {
  types = new Set();
  traces = new Map();
  kinds = { types: 0, traces: 0, batches: 0, files: 0, stops: 0, deletes: 0, downloads: 0 };
}

// One client: does one thing after the other until the server is gone.
async function client(server, ledger, random, job, end) {
  let mine = [...ledger.traces.values()].find((x) => x.job === job && x.isLive) ?? null;
  while (!end.isOver) {
    try {
      mine = await step(server, ledger, random, job, mine);
    } catch (e) {
      if (end.isOver || /ECONN|socket hang up|EPIPE|aborted/.test(`${e.code} ${e.message}`)) return;
      throw e;
    }
  }
}

async function step(server, ledger, random, job, mine) {
  if (mine === null) return create(server, ledger, random, job);
  const dice = random.next();
  if (dice < 0.7) await post(server, ledger, random, mine);
  else if (dice < 0.83) await upload(server, ledger, random, mine);
  else if (dice < 0.95) await download(server, ledger, random);
  else return stop(server, ledger, random, mine);
  return mine;
}

async function create(server, ledger, random, job) {
  const name = `p${random.below(1e6)}.T${random.below(1e6)}`;
  const r = await server.request('POST', '/types', { body: { plugin: name.split('.')[0], type_name: name.split('.')[1], job } });
  if (r.status === 201) { ledger.types.add(`${job} ${r.json().id} ${name}`); ledger.kinds.types++; }
  const t = await server.request('POST', '/traces', { body: { job } });
  if (t.status !== 201) {
    // The answer to an earlier one was lost with the server: take that trace over.
    assert.equal(t.status, 409, String(t.body));
    const id = t.json().trace_id;
    if (t.json().state === 'stopping') { await server.waitFinal(id); return null; }
    return known(ledger, id, job);
  }
  ledger.kinds.traces++;
  return known(ledger, t.json().id, job);
}

function known(ledger, id, job) {
  if (!ledger.traces.has(id)) ledger.traces.set(id, { id, job, isLive: true, isNew: true, seq: 0, acknowledged: new Set(), uncertain: new Map(), files: [], maybeFiles: [] });
  return ledger.traces.get(id);
}

const batchOf = (trace, seq) => Array.from({ length: 1 + (seq % 7) }, (_, i) => slice(`${trace.id}-${seq}-${i}`, seq, 1));

async function post(server, ledger, random, trace) {
  const [again] = trace.uncertain.keys();
  const seq = again ?? ++trace.seq;
  trace.uncertain.set(seq, true);
  const r = await server.request('POST', `/traces/${trace.id}/events?rank=${seq % 2}&seq=${seq}`, { body: batchOf(trace, seq) });
  if (r.status === 409) {
    // The trace is over. A first attempt, whose answer was lost, may have been in time.
    if (again === undefined) trace.uncertain.delete(seq);
    trace.isRefused = true;
    return;
  }
  assert.equal(r.status, 200, String(r.body));
  trace.acknowledged.add(seq);
  trace.uncertain.delete(seq);
  ledger.kinds.batches++;
}

async function upload(server, ledger, random, trace) {
  const name = `file-${random.below(1e9)}`;
  trace.maybeFiles.push(name);
  const r = await server.request('POST', `/traces/${trace.id}/files?rank=${10 + random.below(1000)}&name=${name}`, { body: { traceEvents: [slice(name, 1, 1)] } });
  trace.maybeFiles.pop();
  if (r.status === 201) { trace.files.push(name); ledger.kinds.files++; }
  else assert.equal(r.status, 409, String(r.body));
}

async function download(server, ledger, random) {
  const r = await server.request('GET', `/traces/${random.pick([...ledger.traces.keys()])}/download?format=${random.pick(['chrome', 'perfetto'])}`);
  assert.ok([200, 404, 409].includes(r.status), `${r.status} ${r.body.subarray(0, 500)}`);
  ledger.kinds.downloads++;
}

async function stop(server, ledger, random, trace) {
  trace.isNew = true;
  const r = await server.request('POST', `/traces/${trace.id}/stop`);
  assert.equal(r.status, 202, String(r.body));
  trace.isLive = false;
  ledger.kinds.stops++;
  await server.waitFinal(trace.id);
  if (random.chance(0.1)) {
    trace.mayBeGone = true;
    if ((await server.request('DELETE', `/traces/${trace.id}`)).status === 204) { trace.isGone = true; ledger.kinds.deletes++; }
  }
  return null;
}

// The events of a trace as the server has them now, against the ledger.
async function verifyTrace(server, trace) {
  const r = await server.request('GET', `/traces/${trace.id}`);
  if (trace.isGone || (trace.mayBeGone && r.status === 404)) return assert.equal(r.status, 404, `${trace.id} was deleted and is back`);
  assert.equal(r.status, 200, `${trace.id} is lost`);
  const view = trace.isLive ? r.json() : await server.waitFinal(trace.id);
  if (!trace.isLive) assert.equal(view.state, 'complete', JSON.stringify(view.history));
  const out = await server.downloadChrome(trace.id);
  const counts = new Map();
  for (const e of eventsOf(out)) counts.set(e.name, (counts.get(e.name) ?? 0) + 1);
  const total = [...counts.values()].reduce((a, b) => a + b, 0);
  assert.equal(view.counts.stored, total, `${trace.id} says ${view.counts.stored} and has ${total} events`);
  for (const seq of trace.acknowledged) for (const e of batchOf(trace, seq)) take(counts, e.name, 1, `acknowledged batch ${seq}`);
  for (const name of trace.files) take(counts, name, 1, 'acknowledged file');
  for (const seq of trace.uncertain.keys()) {
    const have = batchOf(trace, seq).map((e) => counts.get(e.name) ?? 0);
    assert.ok(have.every((n) => n === have[0] && n <= 1), `batch ${seq}, of which no answer came, is half there: ${have}`);
    for (const e of batchOf(trace, seq)) counts.delete(e.name);
  }
  for (const name of trace.maybeFiles) { assert.ok((counts.get(name) ?? 0) <= 1, name); counts.delete(name); }
  assert.deepEqual([...counts.keys()], [], `${trace.id} has events that nobody sent`);
}

function take(counts, name, want, what) {
  assert.equal(counts.get(name) ?? 0, want, `${what}: ${name}`);
  counts.delete(name);
}

// Each trace after the kill that followed its last change, and some old ones again.
async function verify(server, ledger, random, nOld) {
  const all = [...ledger.traces.values()];
  const traces = all.filter((x) => x.isLive || x.isNew || random.chance(nOld / all.length));
  await server.expect('GET', '/readyz', [200]);
  const found = new Set();
  for (let job = 0; job < JOBS; job++)
    for (const x of (await server.get(`/types?scope=custom&job=job-${job}`)).json().items) found.add(`job-${job} ${x.id} ${x.name}`);
  for (const x of ledger.types) assert.ok(found.has(x), `the type ${x} is lost`);
  for (const trace of traces) {
    await verifyTrace(server, trace);
    trace.isNew = trace.isLive;
  }
}

test(`a service that is killed ${ROUNDS} times keeps its word`, async (t) => {
  const random = new Random(seedOf(t)), ledger = new Ledger(), dataDir = dataFolder(t);
  const args = ['--max-streams-per-trace', '65535'];
  let inRecovery = 0;
  // Some more when the machine lets the clients do little between two kills.
  for (let round = 0; round < ROUNDS || (ledger.kinds.batches <= ROUNDS && round < 10 * ROUNDS); round++) {
    if (random.chance(0.15)) inRecovery += await killAtStart(dataDir, args, random);
    const server = await Server.start({ dataDir, args });
    t.after(() => server.hasExited || server.kill());
    await verify(server, ledger, random, 3);
    const end = { isOver: false };
    const clients = Array.from({ length: JOBS }, (_, job) => client(server, ledger, random, `job-${job}`, end));
    await Promise.race([Promise.all(clients), new Promise((r) => setTimeout(r, random.between(pick(20, 200), pick(500, 2000))))]);
    end.isOver = true;
    await server.kill();
    await Promise.all(clients);
  }
  const last = await Server.start({ dataDir, args });
  t.after(() => last.stop());
  for (const trace of ledger.traces.values()) if (trace.isLive && (await last.get(`/traces/${trace.id}`)).json().state === 'recording') { trace.isLive = false; await last.stopTrace(trace.id); }
  await verify(last, ledger, random, 100);
  t.diagnostic(`${ROUNDS + inRecovery} kills, ${inRecovery} of them in recovery; acknowledged: ${JSON.stringify(ledger.kinds)}`);
  assert.ok(ledger.kinds.batches > ROUNDS, 'the clients got something done');
});

// Kill a server in the middle of its start.
async function killAtStart(dataDir, args, random) {
  const starting = Server.start({ dataDir, args });
  starting.catch(() => {});
  await new Promise((r) => setTimeout(r, random.between(1, 30)));
  const server = await Promise.race([starting, new Promise((r) => setImmediate(() => r(null)))]);
  if (server === null) return starting.then((s) => s.kill()).then(() => 1, () => 1);
  await server.kill();
  return 1;
}
