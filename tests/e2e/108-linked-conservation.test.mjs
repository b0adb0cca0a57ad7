// Linked programs: emitted = stored + dropped by cause + filtered, for each producer and each type, in the API and in both formats.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { startLinked } from './lib/linked.mjs';
import { TraceProcessor } from './lib/perfetto.mjs';
import { pick, serve } from './lib/server.mjs';

const SHORT_NS = 100, LONG_NS = 5000, MIN_NS = 1000, UNTYPED = 255;
// More than a ring of 16 KiB has room for; and few enough for one of 1 MiB.
const BURST = pick(50000, 20000), FEW = 1000;

const sum = (o) => Object.values(o).reduce((a, b) => a + b, 0);
const typesOf = (member) => new Map(member.types.map((x) => [x.type, x]));

// What holds for the counts of a producer: each equation, and that the types add up to the whole.
function checkCounts({ counts, types, name }) {
  assert.equal(counts.emitted, counts.stored + counts.filtered + counts.dropped, `${name}: ${JSON.stringify(counts)}`);
  assert.equal(counts.dropped, sum(counts.dropped_by_cause ?? {}), name);
  for (const x of types) assert.equal(x.emitted, x.stored + x.filtered + sum(x.dropped), `${name}: ${JSON.stringify(x)}`);
  for (const key of ['emitted', 'stored', 'filtered']) assert.equal(sum(types.map((x) => x[key])), counts[key], `${name}: ${key} of the types: ${JSON.stringify({ counts, types })}`);
  const causes = {};
  for (const x of types) for (const [cause, n] of Object.entries(x.dropped)) causes[cause] = (causes[cause] ?? 0) + n;
  assert.deepEqual(causes, counts.dropped_by_cause ?? {}, name);
}

async function typesFor(p) {
  const ids = {};
  for (const name of ['ONE', 'TWO', 'OFF']) ids[name] = (await p.tell(`type ${name}`)).id;
  return ids;
}

test('a filter, a least duration and a ring that is too small: nothing is lost without a count', async (t) => {
  const server = await serve(t);
  const small = await startLinked(t, server, { rank: 0, env: { TRACEPLANE_RING_BYTES: '16384' } });
  const large = await startLinked(t, server, { rank: 1 });
  const ids = await typesFor(small);
  assert.deepEqual(await typesFor(large), ids);
  for (let i = 0; (await server.get('/types/e2e.OFF')).status !== 200; i++) {
    assert.ok(i < 3000, 'the types did not come');
    await new Promise((r) => setTimeout(r, 20));
  }
  const trace = await server.createTrace({ filter: { include: ['e2e.ONE', 'e2e.TWO'], min_duration_ns: MIN_NS } });
  for (const p of [small, large]) {
    await p.until((s) => s.isRecording, 'recording');
    for (const id of [ids.ONE, ids.TWO]) while (!(await p.tell(`done ${id} 0 0`)).isOn) await new Promise((r) => setTimeout(r, 10));
  }

  // Emitted by type, as the programs know it; those of OFF are not wanted and cost nothing.
  for (const p of [small, large]) {
    const n = p === small ? BURST : FEW;
    assert.deepEqual(await p.tell(`done ${ids.ONE} ${LONG_NS} ${n}`), { n, isOn: true });
    assert.deepEqual(await p.tell(`done ${ids.TWO} ${LONG_NS} ${n + 1}`), { n: n + 1, isOn: true });
    assert.deepEqual(await p.tell(`done ${ids.TWO} ${SHORT_NS} ${FEW + 2}`), { n: FEW + 2, isOn: true });
    assert.deepEqual(await p.tell(`done ${ids.OFF} ${LONG_NS} ${FEW}`), { n: FEW, isOn: false });
  }
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'lossy', end.reason);
  const members = new Map(end.matched.map((m) => [m.rank, m]));
  for (const m of end.matched) checkCounts(m);
  for (const key of ['emitted', 'stored', 'filtered', 'dropped']) assert.equal(sum(end.matched.map((m) => m.counts[key])), end.counts[key], key);

  for (const [rank, n] of [[0, BURST], [1, FEW]]) {
    const types = typesOf(members.get(rank));
    assert.equal(types.get(ids.ONE).emitted, n, `rank ${rank}`);
    assert.equal(types.get(ids.TWO).emitted, n + 1 + FEW + 2, `rank ${rank}`);
    assert.equal(types.get(ids.OFF)?.emitted ?? 0, 0, `rank ${rank}`);
  }
  const lost = members.get(0), whole = members.get(1);
  assert.ok(lost.counts.dropped_by_cause['producer-ring-full'] > 0, JSON.stringify(lost.counts));
  assert.deepEqual(Object.keys(lost.counts.dropped_by_cause), ['producer-ring-full']);
  const names = typesOf(whole).get(UNTYPED); // of its process and threads
  assert.equal(names.stored, names.emitted);
  assert.deepEqual([whole.counts.stored - names.stored, whole.counts.filtered, whole.counts.dropped], [2 * FEW + 1, FEW + 2, 0]);
  t.diagnostic(`rank 0: ${JSON.stringify(lost.counts)}`);

  // The events of the download are those that count as stored, and its description says the same as the API.
  const chrome = await server.downloadChrome(trace.id);
  const tp = await TraceProcessor.load(await server.download(trace.id, '?format=perfetto'));
  const [{ str_value: text }] = await tp.query("select str_value from metadata where name = 'cr-traceplane'");
  const rows = await tp.query("select process.name as process, category as cat, count(1) as n from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid) group by 1, 2");
  for (const m of end.matched) {
    for (const [what, head] of [['chrome', chrome.traceplane], ['perfetto', JSON.parse(text).traceplane]]) {
      const told = head.producers.find((x) => x.rank === m.rank);
      checkCounts(told);
      const { bytes, ...counts } = told.counts; // the API tells them of the stream
      assert.deepEqual([counts, told.types], [m.counts, m.types], `${what}, rank ${m.rank}`);
    }
    for (const name of ['ONE', 'TWO', 'OFF']) {
      const stored = typesOf(m).get(ids[name])?.stored ?? 0, cat = `e2e.${name}`;
      assert.equal(eventsOf(chrome).filter((e) => e.pid === m.pid && e.cat === cat).length, stored, `chrome, rank ${m.rank}, ${name}`);
      const n = rows.filter((r) => r.process.startsWith(`rank ${m.rank}:`) && r.cat === cat).reduce((a, r) => a + Number(r.n), 0);
      assert.equal(n, stored, `perfetto, rank ${m.rank}, ${name}`);
    }
  }
});
