// What keeps web pages out, and what lets a page in that was named.
import assert from 'node:assert/strict';
import test from 'node:test';
import { serve } from './lib/server.mjs';

const post = (server, headers) => server.send('POST', '/traces', { body: {}, headers });

test('pages of other origins cannot do anything', async (t) => {
  const server = await serve(t);
  for (const origin of ['https://evil.example', 'null', `http://localhost.evil.example:${server.port}`, `https://127.0.0.1:${server.port}`, `http://127.0.0.1:${server.port + 1}`]) {
    for (const [method, target] of [['POST', '/traces'], ['GET', '/types'], ['OPTIONS', '/traces'], ['DELETE', '/traces/x']]) {
      const r = await server.request(method, target, { headers: { origin }, contract: false, ...(method === 'POST' && { body: {} }) });
      assert.equal(r.status, 403, `${origin} ${method} ${target}`);
      assert.equal(r.json().type, 'urn:traceplane:problem:untrusted-origin');
      assert.equal(r.headers['access-control-allow-origin'], undefined);
    }
  }
  assert.equal((await server.get('/traces')).json().items.length, 0);
  assert.equal((await post(server, { origin: `http://127.0.0.1:${server.port}` })).status, 201);
});

test('an origin that was allowed is told so, and nothing else is', async (t) => {
  const server = await serve(t, { args: ['--allow-origin', 'https://dash.example'] });
  const headers = { origin: 'https://dash.example', 'access-control-request-method': 'POST' };
  const before = await server.request('OPTIONS', '/traces', { headers });
  assert.equal(before.status, 204);
  assert.equal(before.headers['access-control-allow-origin'], 'https://dash.example');
  assert.match(before.headers['access-control-allow-methods'], /POST/);
  const r = await server.request('POST', '/traces', { body: {}, headers });
  assert.equal(r.status, 201);
  assert.equal(r.headers['access-control-allow-origin'], 'https://dash.example');
  assert.match(r.headers.vary, /origin/i);
  assert.equal(r.headers['access-control-allow-credentials'], undefined);
  await server.problem('GET', '/types', 403, 'untrusted-origin', { headers: { origin: 'https://dash.example.evil.example' } });
});

test('every answer carries what keeps browsers from guessing', async (t) => {
  const server = await serve(t, { args: ['--allow-host', 'trace.example'] });
  const { id } = await server.createTrace({});
  await server.stopTrace(id);
  for (const target of ['/types', '/nowhere', `/traces/${id}/download`, '/metrics', '/', '/openapi.yaml']) {
    const { headers } = await server.get(target);
    assert.equal(headers['x-content-type-options'], 'nosniff', target);
    assert.match(headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'/, target);
    assert.ok(headers['cache-control'], target);
  }
  assert.equal((await server.get('/types')).headers['cache-control'], 'no-store');
  await server.expect('GET', '/types', [200], { headers: { host: 'trace.example:80' } });
  await server.problem('GET', '/types', 421, 'untrusted-host', { headers: { host: 'other.example' } });
});
