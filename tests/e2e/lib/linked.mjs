// Programs that are linked with the library (tests/e2e/linked.c): started, told what to do, counted.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { BINARY } from './server.mjs';

export const LINKED = path.join(path.dirname(BINARY), 'e2e/linked');
// A child that starts a thread of its own is more than ThreadSanitizer wants to see.
const SANITIZER = { TSAN_OPTIONS: `${process.env.TSAN_OPTIONS ?? ''} die_after_fork=0` };
const running = new Set();
process.on('exit', () => { for (const child of running) child.kill('SIGKILL'); });

// For programs that send what is left when they end: the time in which they do so may pass while nobody gets a turn.
export const ENDS_LATE = { TRACEPLANE_FLUSH_MS: '60000' };

// Start one for a server (or a URL); env is added to it. It is registered when this resolves, unless waits is false.
export async function startLinked(t, server, { rank, job, args = [], env = {}, waits = true } = {}) {
  const p = new Linked(server, { rank, job, args, env });
  t.after(() => p.kill());
  if (waits) await p.until((s) => s.isRegistered, 'registered');
  if (waits && typeof server !== 'string') await knowsType(server, job ?? env.TRACEPLANE_JOB ?? 'default');
  return p;
}

// Wait for its type, too: a trace that is made in between has it not. One that is made already keeps new types out.
async function knowsType(server, job) {
  for (let i = 0; i < 100 && (await server.get(`/types/e2e.WORK?job=${job}`)).status !== 200; i++) await new Promise((r) => setTimeout(r, 20));
}

class Linked {
  constructor(server, { rank, job, args, env }) {
    const url = typeof server === 'string' ? server : `http://127.0.0.1:${server.port}`;
    this.err = '';
    this.process = spawn(LINKED, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...SANITIZER, TRACEPLANE_URL: url, ...(rank !== undefined && { TRACEPLANE_RANK: String(rank) }), ...(job && { TRACEPLANE_JOB: job }), ...env },
    });
    running.add(this.process);
    this.process.stderr.on('data', (c) => { this.err += c; });
    this.process.stdin.on('error', () => {});
    this.lines = readline.createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    this.exited = new Promise((resolve) => this.process.once('exit', (code, signal) => { running.delete(this.process); resolve({ code, signal }); }));
  }
  get pid() { return this.process.pid; }

  // One command and its answer.
  async tell(command) {
    this.process.stdin.write(`${command}\n`);
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`no answer to '${command}': ${this.err}`);
    return JSON.parse(value);
  }

  // Ask for the stats until they are as wanted.
  async until(wanted, what, ms = 100000) {
    for (const end = Date.now() + ms; ;) {
      const stats = await this.tell('stats');
      if (wanted(stats)) return stats;
      if (Date.now() > end) throw new Error(`not ${what} after ${ms} ms: ${JSON.stringify(stats)} ${this.err}`);
      await new Promise((r) => setTimeout(r, 10));
    }
  }

  // Wait until a trace records it: what it does from here on is in the trace. A type is recorded when the service has
  // answered for it, which may be after the start.
  recording() { return this.until((s) => s.isRecording && s.isOn, 'recording'); }

  // End it as a program ends; resolves with how it ended and how long that took.
  async end(command = 'exit') {
    const started = Date.now();
    this.process.stdin.end(`${command}\n`);
    return { ...(await this.exited), ms: Date.now() - started };
  }
  async kill() {
    this.process.kill('SIGKILL');
    await this.exited;
  }

  // Threads, open files and memory, as the kernel counts them: what is in use, and what was asked for.
  usage() {
    const status = fs.readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return {
      rssKib: Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]),
      askedKib: Number(/^VmData:\s+(\d+)/m.exec(status)[1]),
      threads: Number(/^Threads:\s+(\d+)/m.exec(status)[1]),
      files: fs.readdirSync(`/proc/${this.pid}/fd`).length,
    };
  }
}

// The numbers i of each thread's slices in a Chrome download, in order of time: {pid/t: [i, ...]}.
export function numbersOf(download) {
  const found = new Map();
  for (const e of download.traceEvents) {
    if (e.ph === 'M' || e.args?.i === undefined) continue;
    const key = `${e.pid}/${e.args.t}`;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(e.args.i);
  }
  return found;
}

// Where a run of numbers has a hole or a double, or undefined.
export function firstBreak(numbers) {
  for (let i = 1; i < numbers.length; i++) if (numbers[i] !== numbers[i - 1] + 1) return `${numbers[i]} follows ${numbers[i - 1]}`;
  return undefined;
}
