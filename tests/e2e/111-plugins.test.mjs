// A plugin with the static library in it, of a program that unloads it: what runs code of the library later finds it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import test from 'node:test';
import { eventsOf } from './lib/events.mjs';
import { ENDS_LATE } from './lib/linked.mjs';
import { BINARY, ROOT, serve } from './lib/server.mjs';

const skip = basename(dirname(BINARY)) !== 'build' && 'not the plain build';

const plugin = `
#include <traceplane/traceplane.h>
static struct tp_client *client = &tp_client_off;
static unsigned type = TP_TYPE_NONE;
int plugin_open(void)
{
    return tp_open(NULL, &client, NULL) == TP_OK &&
           tp_register_type(client, "plugged", "WORK", TP_KIND_SLICE, NULL, &type, NULL) == TP_OK;
}
/* Whether something is recorded by now. */
int plugin_work(void)
{
    struct tp_stats stats;
    TP_BEGIN(client, type, "work");
    TP_END(client, type);
    tp_get_stats(client, &stats, sizeof(stats));
    return stats.emitted > stats.filtered;
}
void plugin_close(void) { tp_close(client); }
`;

// Its thread has recorded when the plugin is unloaded, and ends after that.
const host = `
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int (*work)(void);
static pthread_barrier_t recorded, unloaded;
static void *record(void *unused)
{
    while (!work()) usleep(1000);
    pthread_barrier_wait(&recorded);
    pthread_barrier_wait(&unloaded);
    return unused;
}
int main(int n, char **args)
{
    void *object = dlopen(args[1], RTLD_NOW | RTLD_LOCAL);
    int (*open)(void) = (int (*)(void))dlsym(object, "plugin_open");
    void (*close)(void) = (void (*)(void))dlsym(object, "plugin_close");
    pthread_t thread;
    work = (int (*)(void))dlsym(object, "plugin_work");
    if (strcmp(args[2], "unused") == 0) {
        work();
        dlclose(object);
        return dlopen(args[1], RTLD_NOW | RTLD_NOLOAD) == NULL ? 0 : 2;
    }
    if (n != 3 || !open()) return 1;
    pthread_barrier_init(&recorded, NULL, 2);
    pthread_barrier_init(&unloaded, NULL, 2);
    pthread_create(&thread, NULL, record, NULL);
    pthread_barrier_wait(&recorded);
    if (strcmp(args[2], "closed") == 0) close();
    dlclose(object);
    pthread_barrier_wait(&unloaded);
    pthread_join(thread, NULL);
    return 0;
}
`;

function build(t) {
  const dir = mkdtempSync(join(tmpdir(), 'plugin-'));
  t.after(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, 'plugin.c'), plugin);
  writeFileSync(join(dir, 'host.c'), host);
  const needs = /^Libs.private: (.*)$/m.exec(readFileSync(join(ROOT, 'mk/traceplane.pc.in'), 'utf8'))[1].split(' ');
  const run = (...args) => execFileSync('gcc', args, { cwd: dir });
  run('-shared', '-fPIC', '-o', 'plugin.so', 'plugin.c', `-I${join(ROOT, 'build/include/user')}`, join(dirname(BINARY), 'libtraceplane.a'), ...needs);
  run('-o', 'host', 'host.c', '-pthread', '-ldl');
  return (how, env = {}) => {
    const child = spawn('./host', ['./plugin.so', how], { cwd: dir, env: { ...process.env, ...env }, stdio: 'inherit' });
    t.after(() => child.kill('SIGKILL'));
    return new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  };
}

for (const [how, promise] of [['closed', 'after its client was closed'], ['open', 'while its client is open']]) {
  test(`a plugin may be unloaded ${promise}`, { skip }, async (t) => {
    const server = await serve(t);
    const exited = build(t)(how, { ...ENDS_LATE, TRACEPLANE_URL: `http://127.0.0.1:${server.port}` });
    const isKnown = async () => (await server.get('/producers')).json().items.length > 0
      && (await server.get('/types')).json().items.some((type) => type.plugin === 'plugged');
    while (!(await isKnown())) await new Promise((r) => setTimeout(r, 20));
    const trace = await server.createTrace();
    assert.equal(await exited, 0);
    const end = await server.stopTrace(trace.id);
    assert.equal(end.outcome, 'complete', end.reason);
    assert.ok(eventsOf(await server.downloadChrome(trace.id)).some((e) => e.name === 'work'), 'what it recorded was sent');
  });
}

test('a plugin that opened no client is unloaded', { skip }, async (t) => {
  assert.equal(await build(t)('unused'), 0);
});
