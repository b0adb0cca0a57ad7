// What holds for the counts of every complete trace: nothing that was emitted is unaccounted for.
import assert from 'node:assert/strict';

const total = (causes) => Object.values(causes).reduce((a, b) => a + b, 0);

function check(counts, what) {
  const { emitted, stored, filtered, dropped, dropped_by_cause: causes } = counts;
  assert.equal(emitted, stored + filtered + dropped, `${what}: ${JSON.stringify(counts)}`);
  assert.equal(dropped, total(causes ?? {}), `${what}, by cause: ${JSON.stringify(counts)}`);
}

// In all, for each stream, each producer, and each type that a producer reports.
export function checkConservation({ counts, matched, streams }) {
  check(counts, 'the trace');
  for (const s of streams ?? []) check(s.counts, `stream ${s.stream}`);
  for (const m of matched ?? []) {
    check(m.counts, m.name);
    for (const t of m.types ?? []) assert.equal(t.emitted, t.stored + t.filtered + total(t.dropped), `${m.name}: ${JSON.stringify(t)}`);
  }
}
