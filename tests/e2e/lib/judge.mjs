// What trace_processor must find in a Perfetto download, worked out from the Chrome JSON that went in; and what it finds.
// Times are text in nanoseconds, since a double cannot hold them.

// Parse Chrome JSON (an object or an array) with exact numbers: ts, dur and long integers come as text with a mark.
export function parseExact(text) {
  const marked = text.replace(/"(ts|dur)"(\s*):(\s*)(-?\d[\d.eE+-]*)/g, '"$1"$2:$3"$4"').replace(/([:[,]\s*)(-?\d{16,})(?=\s*[,}\]])/g, '$1"#$2"');
  const parsed = JSON.parse(marked);
  return Array.isArray(parsed) ? { traceEvents: parsed } : parsed;
}

// Microseconds as text to whole nanoseconds as a BigInt.
export function nanoseconds(us) {
  const m = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(String(us));
  if (!m) throw new Error(`no time: ${us}`);
  const digits = (m[3] ?? ''), shift = 3 + Number(m[4] ?? 0);
  const all = BigInt(m[2] + digits) * 10n ** BigInt(Math.max(0, shift - digits.length));
  const down = 10n ** BigInt(Math.max(0, digits.length - shift));
  return (m[1] ? -1n : 1n) * ((all + down / 2n) / down);
}

const baseOf = (trace) => BigInt(String(trace.baseTimeNanoseconds ?? 0).replace('#', ''));

// Slices as trace_processor shows them: {ts, dur, cat, name, args}; instants last 0, unfinished ones -1.
export function expectedSlices(trace) {
  const base = baseOf(trace), out = [], open = new Map(), asyncs = new Map();
  const events = trace.traceEvents.filter((e) => e.ts !== undefined).map((e) => ({ ...e, at: base + nanoseconds(e.ts) }));
  const isAsync = (e) => e.ph === 'b' || e.ph === 'e', inTime = (a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0);
  const order = [...events.filter((e) => !isAsync(e)), ...events.filter(isAsync).sort(inTime)];
  const begin = (map, key, s) => { if (!map.has(key)) map.set(key, []); map.get(key).push(s); out.push(s); };
  for (const e of order) {
    const s = { ts: e.at, dur: 0n, cat: e.cat ?? null, name: e.name ?? null, args: e.args ?? {}, e };
    const lane = JSON.stringify([e.pid, e.tid]), id = JSON.stringify([e.cat, e.id, e.name, e.pid]);
    if (e.ph === 'X') {
      const dur = e.dur === undefined ? 0n : nanoseconds(e.dur);
      out.push({ ...s, dur: dur < 0n ? 0n : dur });
    } else if (e.ph === 'i' || e.ph === 'I') out.push(s);
    else if (e.ph === 'B') begin(open, lane, Object.assign(s, { dur: -1n }));
    else if (e.ph === 'b') begin(asyncs, id, Object.assign(s, { dur: -1n }));
    else if (e.ph === 'E' || e.ph === 'e') {
      const started = (e.ph === 'E' ? open.get(lane) : asyncs.get(id))?.pop();
      if (started) started.dur = e.at - started.ts;
    }
  }
  return out;
}

// Arrows that have a slice at both ends. A flow binds to the innermost slice of its row that holds its time.
export function expectedFlows(trace) {
  const base = baseOf(trace), rows = new Map(), chains = new Map();
  for (const s of expectedSlices(trace)) {
    const row = JSON.stringify([s.e.pid, s.e.tid]);
    if (!'XB'.includes(s.e.ph)) continue;
    if (!rows.has(row)) rows.set(row, []);
    rows.get(row).push(s);
  }
  // In order of their starts, each with the latest end so far: an open slice has none.
  for (const row of rows.values()) {
    row.sort((a, b) => (a.ts < b.ts ? -1 : Number(a.ts > b.ts)));
    let latest = -Infinity;
    for (const s of row) s.latest = latest = latest === Infinity || s.dur < 0n ? Infinity : s.ts + s.dur > latest ? s.ts + s.dur : latest;
  }
  const bound = (e) => {
    const row = rows.get(JSON.stringify([e.pid, e.tid])) ?? [];
    let low = 0, high = row.length; // how many begin by then
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].ts <= e.at) low = middle + 1;
      else high = middle;
    }
    return low > 0 && row[low - 1].latest >= e.at;
  };
  for (const e of trace.traceEvents) {
    if (!['s', 't', 'f'].includes(e.ph)) continue;
    const key = JSON.stringify([e.cat, e.id, e.name]);
    if (!chains.has(key)) chains.set(key, []);
    chains.get(key).push({ ...e, at: base + nanoseconds(e.ts) });
  }
  let n = 0;
  for (const chain of chains.values()) {
    const order = [...chain].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 'stf'.indexOf(a.ph) - 'stf'.indexOf(b.ph)));
    let isOpen = false;
    for (const e of order) {
      if (!bound(e)) continue;
      if (e.ph !== 's' && isOpen) n++;
      isOpen = e.ph === 's' || (isOpen && e.ph === 't');
    }
  }
  return n;
}

// Arguments as rows "key = value", the way trace_processor flattens them: what holds nothing takes no place in an array.
export function flatten(args) {
  const rows = [];
  const put = (key, v) => {
    if (v === null || v === undefined) return false;
    if (Array.isArray(v)) return v.reduce((n, x) => n + Number(put(`${key}[${n}]`, x)), 0) > 0;
    if (typeof v === 'object') return Object.entries(v).filter(([k, x]) => put(`${key}.${k}`, x)).length > 0;
    if (typeof v === 'boolean') rows.push(`${key} = ${Number(v)}`);
    else if (typeof v === 'string' && /^#-?\d+$/.test(v)) rows.push(`${key} = ${BigInt.asIntN(64, BigInt(v.slice(1)))}`);
    else rows.push(`${key} = ${v}`);
    return true;
  };
  for (const [k, v] of Object.entries(args)) put(`debug.${k.replace(/[.[\]]/g, '_')}`, v);
  return rows.sort();
}

const BY_COUNT = (list) => list.reduce((m, x) => m.set(x, (m.get(x) ?? 0) + 1), new Map());

// What is in one list and not in the other, at most three of each, as a sentence; '' when they are equal as bags.
export function difference(wanted, got) {
  const a = BY_COUNT(wanted), b = BY_COUNT(got);
  const missing = [...a].filter(([k, n]) => n > (b.get(k) ?? 0)), extra = [...b].filter(([k, n]) => n > (a.get(k) ?? 0));
  if (missing.length + extra.length === 0) return '';
  const show = (l) => l.slice(0, 3).map(([k, n]) => `${n} x ${k}`).join('\n    ');
  return `${missing.length} kinds are missing, such as\n    ${show(missing)}\n  ${extra.length} are new, such as\n    ${show(extra)}`;
}

const sliceKey = (s) => `${s.ts} + ${s.dur} ${s.cat} ${JSON.stringify(s.name)}`;

// The arguments of slices as the judge has them, by arg_set_id, with the keys that flatten() gives.
async function argumentsOf(judge, prefix, every) {
  const args = new Map();
  const values = await judge.query(`select a.arg_set_id as id, a.key, a.int_value as i, a.string_value as s, a.real_value as r from args a
    where a.key like '${prefix}.%' and a.arg_set_id in (select arg_set_id from slice where ts % ${every} = 0)`);
  for (const v of values) {
    if (!args.has(v.id)) args.set(v.id, []);
    args.get(v.id).push(`debug${v.key.slice(prefix.length)} = ${v.s ?? v.r ?? v.i}`);
  }
  return (row) => (args.get(row.arg_set_id) ?? []).filter((r) => !/^debug\.unfinished/.test(r)).sort();
}

// Differences between the slices that went in and the ones that the judge sees; every `every`-th nanosecond's with arguments.
export async function compareSlices(judge, sources, every = 1n) {
  const wanted = sources.flatMap(expectedSlices);
  const rows = await judge.query('select ts, dur, category as cat, name, arg_set_id from slice');
  const plain = difference(wanted.map(sliceKey), rows.map(sliceKey));
  if (plain) return plain;
  const argsOf = await argumentsOf(judge, 'debug', every);
  const inSample = (s) => s.ts % every === 0n;
  return difference(wanted.filter(inSample).map((s) => `${sliceKey(s)} ${flatten(s.args)}`),
    rows.filter(inSample).map((s) => `${sliceKey(s)} ${argsOf(s)}`));
}

// What the judge's reader of Chrome JSON takes of a download: it knows no member but traceEvents.
export function eventsOnly(download) {
  const text = download.toString('utf8');
  return Buffer.from(`{${text.slice(text.indexOf('"traceEvents":'))}`);
}

// As compareSlices(), of a Chrome download; base is what its times count from. That reader has times as doubles of
// microseconds, so the last nanosecond is not always the same.
export async function compareChromeSlices(judge, sources, base) {
  const isNear = (a, b) => a - b <= 1n && b - a <= 1n, compare = (a, b) => (a < b ? -1 : Number(a > b));
  const inOrder = (list) => list.map((s) => [`${s.cat} ${JSON.stringify(s.name)} ${s.args}`, s]).sort(([k, a], [l, b]) => compare(k, l) || compare(a.ts, b.ts) || compare(a.dur, b.dur));
  const argsOf = await argumentsOf(judge, 'args', 1);
  // Unlike the reader of protobuf it leaves dots in keys.
  const level = (args) => args.map((r) => r.replace(/^.*? = /, (key) => key.replace(/[.[\]]/g, '_'))).sort();
  const wanted = inOrder(sources.flatMap(expectedSlices).map((s) => ({ ...s, args: level(flatten(s.args)) })));
  const rows = inOrder((await judge.query('select ts, dur, category as cat, name, arg_set_id from slice')).map((r) => ({ ...r, ts: r.ts + base, args: level(argsOf(r)) })));
  const plain = difference(wanted.map(([k]) => k), rows.map(([k]) => k));
  if (plain) return plain;
  const at = wanted.findIndex(([, s], i) => !isNear(s.ts, rows[i][1].ts) || !isNear(s.dur, rows[i][1].dur));
  return at < 0 ? '' : `${sliceKey(wanted[at][1])} came as ${sliceKey(rows[at][1])}`;
}

export async function count(judge, what) {
  return Number((await judge.query(`select count(*) as n from ${what}`))[0].n);
}
