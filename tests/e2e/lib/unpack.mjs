// Decompressors that are not ours: node's zlib, and the zstd program, since node 18 has no zstd.
import { spawnSync } from 'node:child_process';
import zlib from 'node:zlib';

export const HAS_ZSTD = spawnSync('zstd', ['--version']).status === 0;

export function unpack(body, encoding) {
  if (encoding === 'gzip') return zlib.gunzipSync(body);
  if (encoding !== 'zstd') return body;
  const r = spawnSync('zstd', ['-dcq'], { input: body, maxBuffer: 1 << 30 });
  if (r.status !== 0) throw new Error(`zstd refuses the body: ${r.stderr}`);
  return r.stdout;
}
