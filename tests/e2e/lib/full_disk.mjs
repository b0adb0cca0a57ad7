// Two ways to make a disk full under a running service, and to give it room again.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { serve, temporaryFolder } from './server.mjs';

// A small file system in memory, for those who may mount one; null when they may not. It goes with the test.
export function mountSmall(t, megabytes) {
  const folder = temporaryFolder();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', folder]).status !== 0) {
    fs.rmdirSync(folder);
    return null;
  }
  t.after(() => { execFileSync('umount', ['-l', folder]); fs.rmdirSync(folder); });
  return folder;
}

// A service on such a file system, {server, fill, free}; null when none can be mounted.
export async function onSmallDisk(t, { megabytes = 4, args = [] } = {}) {
  const folder = mountSmall(t, megabytes);
  if (folder === null) return null;
  const dataDir = path.join(folder, 'data');
  const ballast = path.join(folder, 'ballast');
  const server = await serve(t, { dataDir, args });
  const fill = () => {
    const fd = fs.openSync(ballast, 'w');
    for (const size of [65536, 4096]) {
      try { for (;;) fs.writeSync(fd, Buffer.alloc(size)); } catch (e) { if (e.code !== 'ENOSPC') throw e; }
    }
    fs.closeSync(fd);
  };
  return { server, fill, free: () => fs.rmSync(ballast) };
}

// A service under a limit of file sizes, which needs no privilege: beyond it, the kernel refuses every write.
export async function underSizeLimit(t, { args = [] } = {}) {
  const server = await serve(t, { args });
  const limit = (soft) => execFileSync('prlimit', ['--pid', String(server.process.pid), `--fsize=${soft}:`]);
  return { server, fill: () => limit(0), free: () => limit('unlimited') };
}
