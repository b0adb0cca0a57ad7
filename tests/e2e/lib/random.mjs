// Random numbers that a seed repeats. The seed is printed; TRACEPLANE_SEED=N runs the same again.
export function seedOf(t) {
  const seed = Number(process.env.TRACEPLANE_SEED || Date.now() % 1000000);
  t.diagnostic(`seed ${seed}; TRACEPLANE_SEED=${seed} repeats it`);
  return seed;
}

// mulberry32: below(n), between(a, b), pick(list), chance(p), bytes(n).
export class Random {
  constructor(seed) { this.state = seed >>> 0; }
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  }
  below(n) { return Math.floor(this.next() * n); }
  between(a, b) { return a + this.below(b - a + 1); }
  pick(list) { return list[this.below(list.length)]; }
  chance(p) { return this.next() < p; }
  bytes(n) { return Buffer.from(Array.from({ length: n }, () => this.below(256))); }
}
