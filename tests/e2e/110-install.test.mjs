// What `make install` puts down is all that a program needs: in C and C++, shared and static.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import test from 'node:test';

const root = join(import.meta.dirname, '..', '..');
const isPlain = basename(dirname(process.env.TRACEPLANED ?? '')) === 'build';

const program = `
#include <traceplane/traceplane.h>
#include <stdio.h>
int main(void)
{
    struct tp_client *client = &tp_client_off;
    unsigned type = TP_TYPE_NONE;
    static struct tp_options options;
    options.options_bytes = sizeof(options);
    options.is_off = true;
    if (tp_open(&options, &client, NULL) != TP_OK ||
        tp_register_type(client, "ascend", "KERNEL", TP_KIND_SLICE, NULL, &type, NULL) != TP_OK)
        return 1;
    for (int i = 0; i < 10; i++) {
        TP_BEGIN(client, type, "matmul", TP_INT("i", i), TP_DOUBLE("d", 0.5), TP_TEXT("s", "x"));
        TP_INSTANT(client, type, "mark");
        TP_ADD(client, type, TP_BOOL("b", true), TP_COPY("c", "y"));
        TP_END(client, type);
        TP_COUNTER(client, type, "load", 1.0);
    }
#ifdef __cplusplus
    {
        traceplane::span span(client, type, TP_NAME("span"));
        span.add(TP_INT("i", 1));
    }
#else
    {
        TP_SCOPE(client, type, "scope", TP_INT("i", 1)); TP_SCOPE(client, type, "inner");
    }
#endif
    printf("%u %s\\n", type, tp_version());
    tp_close(client);
    return 0;
}
`;

test('programs build and run with nothing but what is installed', { skip: !isPlain && 'not the plain build' }, (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'install-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const run = (command, ...args) => execFileSync(command, args, { cwd: dir, encoding: 'utf8', env });
  const env = { ...process.env, PKG_CONFIG_PATH: join(dir, 'usr/lib/pkgconfig'), LD_LIBRARY_PATH: join(dir, 'usr/lib') };
  execFileSync('make', ['-C', root, 'install', `PREFIX=${join(dir, 'usr')}`], { stdio: 'pipe' });
  const pkg = (...args) => run('pkg-config', ...args, 'traceplane').trim().split(/\s+/);
  // The prefix is none of the system's, so the compiler minds what is in the headers, too.
  const strict = ['-O2', '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror'];
  const strictest = [...strict, '-Wold-style-cast', '-fsyntax-only'];
  writeFileSync(join(dir, 'program.c'), program);
  writeFileSync(join(dir, 'program.cc'), program);
  const builds = {
    c: ['gcc', '-std=gnu11', ...strict, 'program.c', ...pkg('--cflags', '--libs')],
    cxx: ['g++', '-std=c++11', ...strict, 'program.cc', ...pkg('--cflags', '--libs')],
    static: ['gcc', '-std=gnu11', ...strict, 'program.c', ...pkg('--cflags'), join(dir, 'usr/lib/libtraceplane.a'),
      ...pkg('--libs', '--static').filter((flag) => flag !== '-ltraceplane')],
  };
  for (const compiler of ['gcc', 'clang'])
    for (const std of ['gnu11', 'c11', 'gnu17']) run(compiler, `-std=${std}`, ...strict, '-fsyntax-only', 'program.c', ...pkg('--cflags'));
  for (const compiler of ['g++', 'clang++'])
    for (const std of ['c++11', 'c++17', 'c++20']) run(compiler, `-std=${std}`, ...strictest, 'program.cc', ...pkg('--cflags'));
  for (const [name, [compiler, ...args]] of Object.entries(builds)) {
    run(compiler, '-o', name, ...args);
    assert.match(run(join(dir, name)), /^\d+ \d+\.\d+\.\d+\n$/, name);
  }
  const exported = run('nm', '-D', '--defined-only', join(dir, 'usr/lib/libtraceplane.so')).match(/ tp_\w+/g);
  const visible = run('nm', '-g', '--defined-only', join(dir, 'usr/lib/libtraceplane.a')).match(/ [A-Z] tp_\w+/g);
  assert.ok(exported.length > 15 && exported.length < 40, exported.join());
  assert.equal(visible.length, exported.length, 'the static library shows no more than the shared one');
  assert.deepEqual(run('find', 'usr/include', '-name', '*.h').trim().split('\n').sort(),
    ['macros', 'record', 'traceplane'].map((name) => `usr/include/traceplane/${name}.h`));
});

test('what docs/producers.md says builds a program that starts, and a plugin that shows nothing of the library', { skip: !isPlain && 'not the plain build' }, (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'install-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const { LD_LIBRARY_PATH, ...env } = { ...process.env, HOME: dir };
  const text = readFileSync(join(root, 'docs/producers.md'), 'utf8').replaceAll('\\\n', ' ');
  const lines = text.match(/^ {4}(make install|export|cc) .*$/gm).map((line) => line.trim().replace('make install', 'make -s -C "$ROOT" install'));
  assert.equal(lines.length, 4, lines.join('\n'));
  writeFileSync(join(dir, 'program.c'), program);
  writeFileSync(join(dir, 'plugin.c'), `${program.replace('int main(', 'int plugin(')}`);
  const script = [...lines.slice(0, 3), './a.out', lines[3], 'nm -D --defined-only a.out'].join(' &&\n');
  const said = execFileSync('sh', ['-c', script], { cwd: dir, encoding: 'utf8', env: { ...env, ROOT: root }, stdio: ['ignore', 'pipe', 'inherit'] });
  assert.match(said, /^\d+ \d+\.\d+\.\d+$/m);
  assert.match(said, / T plugin$/m);
  assert.doesNotMatch(said, / tp_/);
});
