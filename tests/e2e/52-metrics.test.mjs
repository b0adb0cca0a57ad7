// /metrics: a judge that is not ours likes its form, and the numbers are those of what was sent.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { slice, slices } from './lib/events.mjs';
import { serve } from './lib/server.mjs';

test('promtool is content, before traffic and after', async (t) => {
  if (spawnSync('promtool', ['--version']).error) return t.skip('no promtool: deploy/install-deps test installs it');
  const server = await serve(t);
  const check = async () => {
    const r = await server.expect('GET', '/metrics', [200]);
    assert.match(r.headers['content-type'], /^text\/plain; version=0\.0\.4/);
    const judged = spawnSync('promtool', ['check', 'metrics'], { input: r.body, encoding: 'utf8' });
    assert.deepEqual([judged.status, judged.stdout + judged.stderr], [0, '']);
  };
  await check();
  await server.registerTypes(['ascend.KERNEL']);
  const { id } = await server.createTrace({});
  await server.events(id, slices(10));
  await server.stopTrace(id);
  await server.downloadChrome(id);
  await server.request('GET', '/nowhere');
  await check();
});

test('what is counted is what was sent', async (t) => {
  const server = await serve(t);
  await server.registerTypes(['ascend.KERNEL', 'ascend.SYNC']);
  await server.problem('POST', '/types', 409, 'id-collision', { body: { plugin: 'ascend', type_name: 'REDUCE_SCATTER' } });
  const { id } = await server.createTrace({ filter: { include: ['ascend.KERNEL'] } });
  await server.problem('POST', '/types', 409, 'registry-frozen', { body: { plugin: 'ascend', type_name: 'NEW' } });
  await server.events(id, [...slices(10), slice('x', 1, 1, { cat: 'ascend.SYNC' }), { ph: 'X' }], { seq: 1 });
  await server.events(id, slices(10), { seq: 1 });
  await server.stopTrace(id);
  const gone = await server.createTrace({});
  await server.expect('POST', `/traces/${gone.id}/cancel`, [202]);
  await server.waitFinal(gone.id);
  const expected = {
    traceplane_types: 2, traceplane_types_registered_total: 2, traceplane_types_refused_total: 2, traceplane_traces_created_total: 2,
    traceplane_traces: 2, traceplane_active_traces: 0, traceplane_traces_finished_total: 2, traceplane_events_posted_total: 12, traceplane_streams: 1,
    traceplane_events_total: 12, traceplane_uploads_open: 0, traceplane_downloads_open: 0, traceplane_http_watches: 0, traceplane_storage_failures_total: 0,
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(await server.metric(name), value, name);
  const text = (await server.get('/metrics')).body.toString();
  for (const line of ['traceplane_events_total{result="stored"} 10', 'traceplane_events_total{result="filtered"} 1', 'traceplane_events_total{result="dropped"} 1',
    'traceplane_batches_total{result="stored"} 1', 'traceplane_batches_total{result="duplicate"} 1', 'traceplane_types_refused_total{reason="collision"} 1',
    'traceplane_types_refused_total{reason="frozen"} 1', 'traceplane_traces_finished_total{outcome="cancelled"} 1', 'traceplane_http_requests_total{operation="createTrace",status="201"} 2'])
    assert.ok(text.split('\n').includes(line), `${line} is not in\n${text}`);
});

test('open connections and watches are counted down again', async (t) => {
  const server = await serve(t);
  const { watch } = await import('./lib/watch.mjs');
  const { id } = await server.createTrace({});
  const before = await server.metric('traceplane_http_connections');
  const watches = await Promise.all([1, 2, 3].map(() => watch(server, id)));
  assert.equal(await server.metric('traceplane_http_watches'), 3);
  assert.equal(await server.metric('traceplane_http_connections'), before + 3);
  for (const w of watches) w.close();
  const settled = async () => (await server.metric('traceplane_http_watches')) === 0 && (await server.metric('traceplane_http_connections')) === before;
  for (let i = 0; i < 3000 && !(await settled()); i++) await new Promise((r) => setTimeout(r, 20));
  assert.ok(await settled());
});
