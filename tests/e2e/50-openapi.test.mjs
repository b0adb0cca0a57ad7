// The document: a linter that is not ours is content, and it has the routes of the server, no more and no fewer.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { OPENAPI, loadContract } from './lib/contract.mjs';
import { ROOT, serve } from './lib/server.mjs';

test('redocly finds nothing to say about openapi.yaml', () => {
  const bin = path.join(ROOT, 'tests/judges/node_modules/.bin/redocly');
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const config = fs.existsSync(path.join(ROOT, 'redocly.yaml')) ? [] : ['--extends=recommended'];
  const r = spawnSync(bin, ['lint', '--format=json', ...config, OPENAPI], { cwd: ROOT, encoding: 'utf8', env });
  const report = JSON.parse(r.stdout);
  assert.deepEqual(report.problems.map((p) => `${p.severity} ${p.ruleId}: ${p.message} ${p.location[0]?.pointer}`), []);
  assert.equal(r.status, 0, r.stderr);
});

// The routes as the table of api/rest.c has them: "GET /traces/{id}" -> operation id.
function routesOfTheServer() {
  const source = fs.readFileSync(path.join(ROOT, 'api/rest.c'), 'utf8');
  return [...source.matchAll(/\{\s*TP_METHOD_([A-Z]+),\s*"([^"]+)",\s*"([^"]+)"/g)].map(([, method, route, id]) => `${method} ${route.replace(/\{[^}]+\}/g, '{}')} ${id}`);
}

test('the document and the server have the same operations', () => {
  const documented = loadContract().operations.map((o) => `${o.method} ${o.path.replace(/^\/v1(?=\/)/, '').replace(/\{[^}]+\}/g, '{}')} ${o.id}`);
  const served = routesOfTheServer();
  assert.ok(served.length > 20, 'the table of api/rest.c was found');
  assert.deepEqual(documented.sort(), served.sort());
});

test('each operation has the parameters of the server', () => {
  const source = fs.readFileSync(path.join(ROOT, 'api/rest.c'), 'utf8');
  for (const o of loadContract().operations) {
    const row = new RegExp(`"${o.id}"[\\s\\S]*?\\}`).exec(source)[0];
    const served = /PARAMS\(([^)]*)\)/.exec(row)?.[1].match(/"[^"]+"/g)?.map((s) => s.slice(1, -1)) ?? [];
    const documented = [...(o.operation.parameters ?? []), ...(o.item.parameters ?? [])].map((p) => (p.$ref ? p.$ref.slice(2).split('/').reduce((n, k) => n[k], loadContract().document) : p));
    assert.deepEqual(documented.filter((p) => p.in === 'query').map((p) => p.name).sort(), served.sort(), o.id);
  }
});

test('the server has the document that the tests read', async (t) => {
  const server = await serve(t);
  const r = await server.expect('GET', '/openapi.yaml', [200]);
  assert.ok(r.body.equals(fs.readFileSync(OPENAPI)));
});

test('the small resources answer', async (t) => {
  const server = await serve(t);
  for (const target of ['/healthz', '/readyz', '/version', '/v1/version', '/', '/metrics']) {
    await server.expect('GET', target, [200]);
    const head = await server.expect('HEAD', target, [200]);
    assert.equal(head.body.length, 0, target);
  }
  const version = (await server.get('/version')).json();
  assert.ok(version.version.length > 0 && Date.parse(version.started_at) <= Date.now());
  await server.problem('GET', '/nowhere', 404, 'not-found');
  await server.problem('GET', '/v2/traces', 404, 'not-found');
});
