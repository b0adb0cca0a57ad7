// Runs a traceplaned of one's own for a test: free port, own data folder, ended by its pid.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { checkConservation } from './conserved.mjs';
import { checkExchange, loadContract } from './contract.mjs';

export const ROOT = new URL('../../../', import.meta.url).pathname;
export const BINARY = process.env.TRACEPLANED || path.join(ROOT, 'build/traceplaned');
export const SHARED = path.join(ROOT, '../shared');

// Sanitizer builds are several times slower; scenarios that repeat things do fewer of them.
export const IS_SANITIZED = /address|thread|undefined|memory/.test(BINARY);
export const pick = (plain, sanitized) => (IS_SANITIZED ? sanitized : plain);

const START_MS = 120000;
const STOP_MS = 60000;
const ANSWER_MS = 60000;
const running = new Set();
process.on('exit', () => { for (const { process: child } of running) child.kill('SIGKILL'); });

export function temporaryFolder() {
  return fs.mkdtempSync(path.join(os.tmpdir(), 'traceplane-e2e-'));
}

// A data folder that goes with the test, after the servers that still write to it.
export function dataFolder(t) {
  const folder = temporaryFolder();
  t.after(async () => {
    for (const server of running) if (server.dataDir === folder) await server.kill();
    fs.rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

// Start a server that ends with the test: cleanly, or the test fails.
export async function serve(t, options) {
  const s = await Server.start(options);
  t.after(() => s.stop());
  return s;
}

// A running server and the requests that tests send to it.
export class Server {
  // Start one; args are further command line arguments, dataDir is kept when given and made (and removed) otherwise;
  // `through` is a command that runs it, passes SIGTERM on, and ends as it ends.
  static async start({ args = [], dataDir = null, env = {}, through = [] } = {}) {
    const s = new Server();
    loadContract(); // now, since it takes a while
    s.ownsData = dataDir === null;
    s.dataDir = dataDir ?? temporaryFolder();
    s.log = '';
    const [program, ...words] = [...through, BINARY];
    s.process = spawn(program, [...words, '--listen', '127.0.0.1:0', '--kineto-socket', '', '--data-dir', s.dataDir, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    running.add(s);
    s.process.once('error', (e) => s.process.emit('exit', e.code, null));
    s.exited = new Promise((resolve) => s.process.once('exit', (code, signal) => {
      running.delete(s);
      s.hasExited = true;
      resolve({ code, signal });
    }));
    s.port = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => { s.process.kill('SIGKILL'); reject(new Error(`no start within ${START_MS} ms:\n${s.log}`)); }, START_MS);
      const look = (chunk) => {
        s.log += chunk;
        const m = /\bhttp(?:=\"?|:\/\/)127\.0\.0\.1:(\d+)/.exec(s.log);
        if (m) { clearTimeout(timer); resolve(Number(m[1])); }
      };
      s.process.stdout.on('data', look);
      s.process.stderr.on('data', look);
      s.exited.then(({ code, signal }) => { clearTimeout(timer); reject(new Error(`ended at once (${code ?? signal}):\n${s.log}`)); });
    });
    s.agent = new http.Agent({ keepAlive: !args.includes('--idle-timeout-s') });
    return s;
  }

  // One request; body is a Buffer, a string, an object (sent as JSON) or a stream. Resolves with
  // {status, headers, body: Buffer, json()}; rejects when the connection breaks, or when the reply is not what
  // openapi.yaml says (contract: false turns that off for requests that are no request of the API at all).
  async request(method, target, options = {}) {
    const reply = await this.send(method, target, options);
    if (options.contract !== false) checkExchange({ method, target, body: options.body, sentHeaders: options.headers }, reply);
    return reply;
  }

  send(method, target, { body, headers = {}, signal } = {}) {
    let data = body;
    const sent = { ...headers };
    if (data !== undefined && !Buffer.isBuffer(data) && typeof data === 'object' && typeof data.pipe !== 'function') {
      data = JSON.stringify(data);
      sent['content-type'] ??= 'application/json';
    }
    if (typeof data === 'string') data = Buffer.from(data);
    if (Buffer.isBuffer(data)) sent['content-length'] ??= data.length;
    return new Promise((resolve, reject) => {
      const req = http.request({ host: '127.0.0.1', port: this.port, method, path: target, headers: sent, agent: this.agent, signal }, (res) => {
        const chunks = [];
        res.on('data', (c) => chunks.push(c));
        res.on('error', reject);
        res.on('end', () => {
          const whole = Buffer.concat(chunks);
          resolve({ status: res.statusCode, headers: res.headers, body: whole, json: () => JSON.parse(whole.toString('utf8')) });
        });
      });
      req.setTimeout(ANSWER_MS, () => req.destroy(new Error(`no answer within ${ANSWER_MS} ms: ${method} ${target}`)));
      req.on('error', reject);
      if (data !== undefined && typeof data.pipe === 'function') data.pipe(req);
      else req.end(data);
    });
  }
  get(target, options) { return this.request('GET', target, options); }
  post(target, body, options = {}) { return this.request('POST', target, { ...options, body }); }

  // As post(), and the status must be one of `ok`.
  async expect(method, target, ok, options) {
    const r = await this.request(method, target, options);
    if (!ok.includes(r.status)) throw new Error(`${method} ${target}: ${r.status} ${r.body}`);
    return r;
  }

  async registerTypes(names, job) {
    const types = names.map((n) => ({ plugin: n.slice(0, n.indexOf('.')), type_name: n.slice(n.indexOf('.') + 1) }));
    return (await this.expect('POST', '/types', [200, 201], { body: { types, ...(job && { job }) } })).json();
  }

  async createTrace(request = {}) {
    return (await this.expect('POST', '/traces', [201], { body: request })).json();
  }

  // Stop a trace and wait for its final state.
  async stopTrace(id) {
    await this.expect('POST', `/traces/${id}/stop`, [202]);
    return this.waitFinal(id);
  }

  // The trace when it is over; one that is complete has nothing unaccounted for.
  async waitFinal(id) {
    for (let i = 0; i < 3000; i++) {
      const trace = (await this.expect('GET', `/traces/${id}`, [200])).json();
      if (trace.state === 'complete') checkConservation(trace);
      if (['complete', 'failed', 'cancelled'].includes(trace.state)) return trace;
      await new Promise((r) => setTimeout(r, 20));
    }
    throw new Error(`trace ${id} reached no final state in 60 s`);
  }

  // Download as parsed JSON (chrome) or as bytes (perfetto).
  async download(id, query = '') {
    return (await this.expect('GET', `/traces/${id}/download${query}`, [200])).body;
  }
  async downloadChrome(id, query = '') {
    return JSON.parse((await this.download(id, query)).toString('utf8'));
  }

  // A problem: the reply must have this status and this kind; resolves with its members.
  async problem(method, target, status, kind, options) {
    const r = await this.expect(method, target, [status], options);
    const p = r.json();
    if (!String(r.headers['content-type']).startsWith('application/problem+json') || p.type !== `urn:traceplane:problem:${kind}`)
      throw new Error(`${method} ${target}: not a problem '${kind}': ${r.headers['content-type']} ${r.body}`);
    return p;
  }

  // Post events: a list of Chrome events, with query parameters such as {seq: 1, rank: 0}.
  async events(id, events, query = {}) {
    const q = new URLSearchParams(query).toString();
    return (await this.expect('POST', `/traces/${id}/events${q && '?' + q}`, [200], { body: { traceEvents: events } })).json();
  }

  // The value of a metric, all of its label sets summed; NaN when it is not there.
  async metric(name) {
    const text = (await this.expect('GET', '/metrics', [200])).body.toString();
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].map((m) => Number(m[1]));
    return values.length === 0 ? NaN : values.reduce((a, b) => a + b, 0);
  }

  // Memory in KiB and open files of the process, as the kernel counts them.
  usage() {
    const status = fs.readFileSync(`/proc/${this.process.pid}/status`, 'utf8');
    return {
      rssKib: Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]),
      threads: Number(/^Threads:\s+(\d+)/m.exec(status)[1]),
      files: fs.readdirSync(`/proc/${this.process.pid}/fd`).length,
    };
  }

  // End it like an administrator does; the exit must be clean. The data folder stays for the next server.
  async terminate() {
    this.agent.destroy();
    if (this.hasExited && this.isKilled) return;
    this.process.kill('SIGTERM');
    const timer = setTimeout(() => this.process.kill('SIGKILL'), STOP_MS);
    const end = await this.exited;
    clearTimeout(timer);
    if (end.code !== 0) throw new Error(`traceplaned ended with ${end.code ?? end.signal}:\n${this.log}`);
  }

  // End it like a power cut of the process does.
  async kill() {
    this.agent.destroy();
    this.isKilled = true;
    this.process.kill('SIGKILL');
    await this.exited;
  }

  // terminate() and remove the data folder.
  async stop() {
    await this.terminate();
    if (this.ownsData) fs.rmSync(this.dataDir, { recursive: true, force: true });
  }
}
