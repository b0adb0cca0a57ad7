// Values from a JSON Schema, right ones and broken ones.
import { resolve } from './contract.mjs';

const WORDS = ['ascend', 'KERNEL', 'default', 'rank-0', 'x', '', '*', 'a.b', 'ü', '\u0000', '..', 'a'.repeat(300), '2026-01-01T00:00:00Z', '\ud83d\ude00'];
const ODD = [null, true, 0, -1, 1.5, 1e308, 9007199254740993, '', 'x', [], {}, [[[[]]]], { a: { b: { c: {} } } }, '\u0000', 'é'.repeat(2000), [null], -0];

// A value that fits the schema more often than not.
export function sample(schema, random, depth = 0) {
  const s = resolve(schema);
  if (s === undefined || s === true || depth > 8) return random.pick(ODD);
  if (s.const !== undefined) return s.const;
  if (s.enum) return random.pick(s.enum);
  if (s.examples && random.chance(0.2)) return random.pick(s.examples);
  const choice = s.oneOf ?? s.anyOf;
  if (choice && !s.properties) return sample(random.pick(choice), random, depth + 1);
  if (s.allOf && !s.properties) return Object.assign({}, ...s.allOf.map((x) => sample(x, random, depth + 1)));
  const type = Array.isArray(s.type) ? random.pick(s.type) : s.type;
  switch (type ?? (s.properties ? 'object' : 'string')) {
    case 'object': return object(s, random, depth);
    case 'array': return Array.from({ length: random.below(4) }, () => sample(s.items, random, depth + 1));
    case 'integer': return random.pick([0, 1, 2, 154, s.minimum ?? 0, s.maximum ?? 1000]);
    case 'number': return random.pick([0, 1.5, -2]);
    case 'boolean': return random.chance(0.5);
    case 'null': return null;
    default: return random.pick(WORDS);
  }
}

function object(s, random, depth) {
  const out = {};
  for (const [key, value] of Object.entries(s.properties ?? {}))
    if ((s.required ?? []).includes(key) || random.chance(0.4)) out[key] = sample(value, random, depth + 1);
  return out;
}

// The value with one place spoiled: another type, a member too many, one missing.
export function spoil(value, random) {
  if (value === null || typeof value !== 'object' || random.chance(0.2)) return random.pick(ODD);
  const keys = Object.keys(value);
  if (keys.length === 0 || random.chance(0.2)) return Array.isArray(value) ? [...value, random.pick(ODD)] : { ...value, [random.pick(WORDS)]: random.pick(ODD) };
  const key = random.pick(keys), copy = Array.isArray(value) ? [...value] : { ...value };
  if (!Array.isArray(copy) && random.chance(0.2)) delete copy[key];
  else copy[key] = spoil(copy[key], random);
  return copy;
}

// Text with a byte changed, cut or doubled.
export function scramble(text, random) {
  const bytes = Buffer.from(text), at = random.below(bytes.length + 1);
  switch (random.below(4)) {
    case 0: return bytes.subarray(0, at);
    case 1: return Buffer.concat([bytes.subarray(0, at), random.bytes(random.between(1, 4)), bytes.subarray(at)]);
    case 2: return Buffer.concat([bytes, bytes]);
    default: { const b = Buffer.from(bytes); if (b.length > 0) b[random.below(b.length)] ^= 1 << random.below(8); return b; }
  }
}
