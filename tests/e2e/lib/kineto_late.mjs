// A trace may be tried again when the machine kept a process from doing its part in time, and for no other reason: the
// service must say that it was late, and what the stand-in says of itself must bear that out.
import assert from 'node:assert/strict';

const LATE = /^(it asked too late to start with the others|it lagged and was in step too late to start with the others|no file: the process dropped the request|it read its request too late to start in time)$/;
const TOLD_MS = 300; // from the request for a trace until a process can be told: its folder is made first
const TICK_MS = 1000; // libkineto looks once a second whether it is time to begin
const SPARE_MS = 200; // and may be late by that much: lib/kineto/schedule
const WINDOW_MS = 50; // how long a process waits for an answer

// Collect the lines that a stand-in writes; others of the process are not ours.
export function listen(child) {
  const c = { events: [], of: (event) => c.events.filter((e) => e.event === event) };
  let rest = '';
  child.stdout.on('data', (data) => {
    const lines = (rest + data).split('\n');
    rest = lines.pop();
    c.events.push(...lines.filter((l) => l.startsWith('{')).map((l) => JSON.parse(l)));
  });
  return c;
}

// Whether a process that was told `events` since `asked` was kept by the machine from starting at `start`.
function wasLate(events, asked, start, warmup) {
  const taken = events.findLast((e) => e.event === 'accepted');
  const polls = events.filter((e) => e.event === 'poll');
  // It asked in time, as far as anybody can see: then it had to be told.
  const latest = start - warmup - TICK_MS - SPARE_MS;
  const inTime = polls.filter((e) => !e.behind && e.us < WINDOW_MS * 1000 && e.ms - e.us / 1000 > asked + TOLD_MS && e.ms < latest);
  if (taken === undefined) return inTime.length === 0;
  const answer = polls.findLast((e) => e.ms <= taken.ms);
  // Nothing came within the whole window of the request before: this answer is that one's.
  const wasBehind = polls[polls.indexOf(answer) - 1]?.bytes === -1;
  const wasDropped = events.some((e) => e.event === 'dropped' && /insufficient time|start timestamp in past/.test(e.why));
  // It was told in time and looked too late; or the answer was long in its queue.
  return wasDropped && (taken.ms <= start - warmup - TICK_MS || answer === undefined || wasBehind || answer.us >= WINDOW_MS * 1000);
}

// Whether a trace of those that `list` stands for, asked for at `asked`, may be tried again. Fails when the service says
// that a process was late and it was not.
export function mayRepeat(end, asked, list) {
  const missed = end.matched.filter((m) => m.kind === 'kineto' && ['refused', 'lost'].includes(m.state));
  if (missed.length === 0 || !missed.every((m) => LATE.test(m.reason ?? ''))) return false;
  const start = Date.parse(end.start_at), warmup = end.kineto?.warmup_ms ?? 5000;
  assert.ok(!Number.isNaN(start), 'a trace without a start has nobody who is late for it');
  let n = 0;
  for (const c of list) {
    for (const number of new Set(c.events.map((e) => `${e.client} ${e.pid}`)))
      n += wasLate(c.events.filter((e) => `${e.client} ${e.pid}` === number && e.ms >= asked), asked, start, warmup);
  }
  const told = missed.map((m) => `${m.name}: ${m.reason}`).join('; ');
  assert.ok(n >= missed.length, `${told}; but only ${n} of the processes were late for ${end.start_at}:\n${JSON.stringify(list.flatMap((c) => c.events.filter((e) => e.ms >= asked)))}`);
  return true;
}

// Wait until no process has a request any more that it was told too late: it would be busy.
async function settled(server) {
  const isFree = (p) => p.kind !== 'kineto' || !['armed', 'busy', 'recording'].includes(p.state);
  for (let i = 0; i < 1000 && !(await server.get('/producers?limit=1000')).json().items.every(isFree); i++) await new Promise((r) => setTimeout(r, 20));
}

// A trace of all, to its end: make(i) asks for it and resolves with its id.
export async function tracedBy(server, make, list) {
  for (let i = 0; ; i++) {
    const asked = Date.now();
    const end = await server.waitFinal(await make(i));
    if (i === 7 || !mayRepeat(end, asked, list)) return end;
    await settled(server);
  }
}

export const traced = (server, body, list) => tracedBy(server, async () => (await server.createTrace(body)).id, list);
