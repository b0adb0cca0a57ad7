// Helpers of the scenarios that exceed limits.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { BINARY, serve } from './server.mjs';

// The limits that traceplaned has: {name: {unit, value}}, from its own help.
export function allLimits() {
  const help = execFileSync(BINARY, ['--help'], { encoding: 'utf8' });
  return Object.fromEntries([...help.matchAll(/^ {2}--(max-[a-z-]+) N\n[^\n]*\(([^,()]+), default (\d+)\)/gm)].map((m) => [m[1], { unit: m[2], value: Number(m[3]) }]));
}

// A server with one small limit, and the type ascend.KERNEL unless that is in the way.
export async function limited(t, name, max, { types = true, more = [] } = {}) {
  const server = await serve(t, { args: [`--${name}`, String(max), ...more] });
  if (types) await server.registerTypes(['ascend.KERNEL']);
  return server;
}

const STATUSES = [400, 409, 413, 429, 431, 503, 507];

// A refusal because of a limit: it names the limit, its unit and its value.
export function assertNames(reply, name, max) {
  assert.ok(STATUSES.includes(reply.status), `${name}: ${reply.status} ${reply.body}`);
  const p = reply.json();
  assert.equal(p.limit, name, `the limit is not named: ${reply.body}`);
  assert.equal(p.unit, allLimits()[name].unit);
  assert.equal(p.max, max);
  return p;
}
