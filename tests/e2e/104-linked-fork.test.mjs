// A fork: the child is silent or a producer of its own, never a corrupter of its parent.
import assert from 'node:assert/strict';
import test from 'node:test';
import { ENDS_LATE, firstBreak, numbersOf, startLinked } from './lib/linked.mjs';
import { serve } from './lib/server.mjs';

// What the parent's agent holds on its stack at the fork is out of the child's sight, and LeakSanitizer (which says that false leaks are possible) takes it for lost.
const NO_FALSE_LEAKS = { ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:detect_leaks=0` };

test('children with and without a client of their own leave the parent alone', async (t) => {
  const server = await serve(t);
  const p = await startLinked(t, server, { args: ['--threads', '2', '--pause-us', '100'], env: { ...NO_FALSE_LEAKS, ...ENDS_LATE } });
  const trace = await server.createTrace();
  await p.recording();
  const children = [];
  for (let i = 0; i < 5; i++) {
    const orphan = await p.tell('orphan 50');
    assert.equal(orphan.status, 0, `the silent child ends well: ${p.err}`);
    await p.tell('slices 10');
    const child = await p.tell('fork 20');
    assert.equal(child.status, 0, `the new producer ends well: ${p.err}`);
    children.push({ orphan: orphan.pid, child: child.pid });
  }
  const end = await server.stopTrace(trace.id);
  assert.equal(end.outcome, 'complete', end.reason);
  const found = numbersOf(await server.downloadChrome(trace.id));
  assert.equal(found.get(`${p.pid}/100`).length, 50);
  for (const [thread, numbers] of found) assert.equal(firstBreak(numbers), undefined, thread);
  for (const { orphan, child } of children) {
    assert.equal([...found.keys()].filter((k) => k.startsWith(`${orphan}/`)).length, 0, 'a silent child has no events');
    assert.equal(found.get(`${child}/101`)?.length, 20, 'a new producer has all of its own');
  }
  assert.equal((await p.end()).code, 0);
});
