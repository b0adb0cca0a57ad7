// Children of multiprocessing end by os._exit(): what they recorded is in the trace, to the last event.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { noPython, recordScript } from './lib/python.mjs';
import { serve } from './lib/server.mjs';

for (const method of ['fork', 'forkserver', 'spawn', 'executor']) {
  test(`what a child records is in the trace: ${method}`, { skip: noPython }, async (t) => {
    const server = await serve(t);
    const { end, err, download } = await recordScript(t, server, 'children.py', 'WORK', { args: [method] });
    assert.equal(err, '');
    assert.equal(end.outcome, 'complete', end.reason);
    const numbers = (name) => eventsOf(download).filter((e) => e.name === name).map((e) => e.args.i).sort((a, b) => a - b);
    const first = (n) => [...Array(n).keys()];
    assert.deepEqual(numbers('work'), first(method === 'executor' ? 20 : 10), 'what it did before it returned');
    assert.deepEqual(numbers('late'), first(method === 'executor' ? 0 : 10), 'what its threads did after that');
  });
}
