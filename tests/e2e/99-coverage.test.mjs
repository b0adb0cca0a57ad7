// The other way round: all that openapi.yaml promises was seen in the scenarios before this one.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { loadContract, resolve } from './lib/contract.mjs';

// Statuses that no request can bring about at will: faults of the machine. A full disk is made by 82-full-disk.
const NOT_AT_WILL = new Set(['500', '5XX', 'default']);

const isWholeRun = process.env.TRACEPLANE_E2E_ALL === '1';
const folder = process.env.TRACEPLANE_E2E_SEEN;
const seen = isWholeRun ? fs.readdirSync(folder).flatMap((f) => JSON.parse(fs.readFileSync(path.join(folder, f), 'utf8'))) : [];

test('every documented operation was exercised, with every status and content type', (t) => {
  if (!isWholeRun) return t.skip('only when all scenarios run');
  const missing = [];
  for (const { id, operation } of loadContract().operations) {
    const mine = seen.filter((s) => s.id === id);
    if (mine.length === 0) missing.push(id);
    for (const [status, response] of Object.entries(operation.responses)) {
      if (NOT_AT_WILL.has(status)) continue;
      const got = mine.filter((s) => s.key === status);
      if (got.length === 0) missing.push(`${id} ${status}`);
      for (const type of Object.keys(resolve(response).content ?? {})) if (got.length > 0 && !got.some((s) => s.type === type)) missing.push(`${id} ${status} ${type}`);
    }
  }
  assert.deepEqual(missing, []);
});
