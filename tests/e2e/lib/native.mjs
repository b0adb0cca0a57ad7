// Batches as linked programs post them (docs/stream-format.md), put together by hand: also those that our own library
// does not send, or not any more.
export const PACKETS = { 'content-type': 'application/x-perfetto-trace' };

function varint(v) {
  const bytes = [];
  for (v = BigInt(v); v > 0x7fn; v >>= 7n) bytes.push(Number(v & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(v)]);
}
const padded = (v, width) => Buffer.from(Array.from({ length: width }, (_, i) => ((v >> (7 * i)) & 0x7f) | (i + 1 < width ? 0x80 : 0)));
const fixed = (v) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(v)); return b; };

// A field: a number, or the bytes of a text or a message.
const field = (number, value) => Buffer.isBuffer(value) || typeof value === 'string'
  ? Buffer.concat([varint(number * 8 + 2), varint(Buffer.byteLength(value)), Buffer.from(value)])
  : Buffer.concat([varint(number * 8), varint(value)]);
const packet = (...fields) => field(1, Buffer.concat(fields));

// The head of a batch, without a clock: lib/trace/native_batch.c has the layout.
export function head(stream, nEvents) {
  return Buffer.concat([Buffer.from([0x0a, 0x3e, 0x50]), padded(stream, 3), Buffer.from([0x68, 0x01, 0xf8, 0xea, 0x04, 0x01, 0x9a, 0xeb, 0x04, 0x12, 0x09]),
    fixed(nEvents), Buffer.from([0x11]), fixed(0), Buffer.from([0x8a, 0xeb, 0x04, 26]), Buffer.alloc(26)]);
}

// A batch of slices {name, ts, dur, hasEnd}, in nanoseconds, of one type and one thread.
export function batch(stream, cat, { pid, tid }, slices) {
  const uuid = 0x1000, zigzag = (v) => 2 * v;
  const thread = field(60, Buffer.concat([field(1, uuid), field(4, Buffer.concat([field(1, pid), field(2, tid)])), field(9901, zigzag(pid)), field(9903, zigzag(tid))]));
  const names = [field(1, Buffer.concat([field(1, 1), field(2, cat)])), ...slices.map((s, i) => field(2, Buffer.concat([field(1, i + 1), field(2, s.name)])))];
  const events = slices.flatMap((s, i) => [
    packet(field(8, s.ts), field(10, stream), field(13, 2), field(11, Buffer.concat([field(9, 1), field(9900, s.dur), field(11, uuid), field(3, 1), field(10, i + 1)]))),
    ...(s.hasEnd ? [packet(field(11, Buffer.concat([field(9901, 1), field(9, 2), field(11, uuid)])), field(8, s.ts + s.dur), field(10, stream))] : []),
  ]);
  return Buffer.concat([head(stream, slices.length), packet(field(10, stream), thread), packet(field(10, stream), field(13, 2), field(12, Buffer.concat(names))), ...events]);
}
