// Whoever keeps the service up sees when Kineto processes have no place for their files, in three places, and when they do again.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { mountSmall } from './lib/full_disk.mjs';
import { clients, producers, serveKineto, until } from './lib/kineto.mjs';
import { temporaryFolder } from './lib/server.mjs';

const ready = async (server) => (await server.expect('GET', '/readyz', [200])).json();
let n = 0;

async function follow(t, traceDir, { spoil, mend, why, path: shown = '' }) {
  const kineto = { name: `tp-e2e-${process.pid}-files-${++n}`, traceDir };
  const server = await serveKineto(t, { kineto });
  clients(t, server);
  await producers(server, 1);
  assert.deepEqual(await ready(server), { status: 'ready' });
  assert.equal(await server.metric('traceplane_kineto_files_usable'), 1);
  spoil();
  const { degraded } = await until('it is told', async () => { const r = await ready(server); return r.degraded && r; });
  assert.equal(degraded.length, 1);
  assert.match(degraded[0], why);
  assert.ok(degraded[0].includes(shown), degraded[0]);
  assert.equal(await server.metric('traceplane_kineto_files_usable'), 0);
  assert.match(server.log, /event=kineto-files-unavailable/);
  const trace = (await server.expect('POST', '/traces', [200], { body: { dry_run: true } })).json();
  assert.match(trace.unmatched[0].reason, why);
  mend();
  await until('it goes again', async () => (await ready(server)).degraded === undefined);
  assert.equal(await server.metric('traceplane_kineto_files_usable'), 1);
}

test('a file in the place of the folder', async (t) => {
  const folder = temporaryFolder(), files = path.join(folder, 'files');
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const spoil = () => { fs.rmSync(files, { recursive: true }); fs.writeFileSync(files, ''); };
  await follow(t, files, { spoil, mend: () => fs.rmSync(files), why: /is no directory/ });
});

test('a folder that others could write to', async (t) => {
  const folder = temporaryFolder(), files = path.join(folder, 'files');
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const spoil = () => { fs.rmSync(files, { recursive: true }); fs.mkdirSync(files); fs.chmodSync(files, 0o777); };
  await follow(t, files, { spoil, mend: () => fs.chmodSync(files, 0o755), why: /may be written to by others/ });
});

test('a folder with a long name: the reason is there, whole', async (t) => {
  const folder = temporaryFolder(), above = path.join(folder, 'long'.repeat(Math.floor((220 - folder.length) / 4))), files = path.join(above, 'files');
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const spoil = () => { fs.chmodSync(above, 0o777); fs.rmSync(files, { recursive: true }); };
  fs.mkdirSync(above, { mode: 0o755 });
  await follow(t, files, { spoil, mend: () => fs.chmodSync(above, 0o755), why: /may be written to by others/, path: above });
});

test('no space', async (t) => {
  const folder = mountSmall(t, 4);
  if (folder === null) return t.skip('nobody may mount a file system here');
  fs.chmodSync(folder, 0o755);
  const ballast = path.join(folder, 'ballast');
  const spoil = () => fs.writeFileSync(ballast, Buffer.alloc(3.5 * 1048576));
  await follow(t, path.join(folder, 'files'), { spoil, mend: () => fs.rmSync(ballast), why: /less than 1 MiB is free/ });
});

test('when it starts, too', async (t) => {
  const folder = temporaryFolder(), files = path.join(folder, 'files');
  t.after(() => fs.rmSync(folder, { recursive: true }));
  fs.writeFileSync(files, '');
  const server = await serveKineto(t, { kineto: { name: `tp-e2e-${process.pid}-files-${++n}`, traceDir: files } });
  assert.match(server.log, /event=kineto-files-unavailable.*is no directory/);
  assert.match(server.log, /event=kineto-listening.*files=unavailable/);
  assert.match((await ready(server)).degraded[0], /is no directory/);
});
