// The real curl, as a user types it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

// Run curl with these arguments; resolves with its standard output. cwd is where -O leaves files.
export async function curl(args, cwd) {
  const { stdout } = await run('curl', ['--noproxy', '*', '-sS', '--max-time', '60', ...args], { cwd, encoding: 'utf8', maxBuffer: 1 << 28 });
  return stdout;
}
