// Events that scenarios send.
export const KERNEL = 'ascend.KERNEL';

// A slice; times in microseconds.
export const slice = (name, ts, dur, more = {}) => ({ ph: 'X', cat: KERNEL, name, pid: 1, tid: 1, ts, dur, ...more });

// n slices one after the other, named prefix-0, prefix-1, ...
export const slices = (n, prefix = 'k', more = {}) => Array.from({ length: n }, (_, i) => slice(`${prefix}-${i}`, 10 * i, 5, more));

// The events of a download that are no metadata.
export const eventsOf = (download) => download.traceEvents.filter((e) => e.ph !== 'M');
export const namesOf = (download) => eventsOf(download).map((e) => e.name).sort();
