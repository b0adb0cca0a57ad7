// Requests that two readers could take for different ones, and methods that do not apply.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { raw, request } from './lib/raw.mjs';
import { Server } from './lib/server.mjs';

let server;
before(async () => { server = await Server.start(); });
after(() => server.stop());

const HOST = 'Host: 127.0.0.1';
const BODY = '{"plugin":"a","type_name":"B"}';

const isProblem = (r) => r?.headers['content-type'] === 'application/problem+json';

// Refused with this status (0: the connection is closed without a word), and nothing was done.
async function refused(bytes, status, what) {
  const { replies, closed, text } = await raw(server.port, bytes, { half: true });
  assert.ok(replies.length <= 1 || replies.every((r) => r.status >= 400), `${what}: ${text}`);
  if (replies.length > 0) {
    assert.ok([status].flat().includes(replies[0].status), `${what}: ${text}`);
    if (String(replies[0].headers['content-type']).includes('problem+json')) JSON.parse(replies[0].body.toString());
  } else assert.ok(closed, `${what}: neither an answer nor an end: ${text}`);
  assert.equal((await server.expect('GET', '/types?scope=custom', [200])).json().items.length, 0, what);
  return replies[0];
}

test('two lengths, or a length and chunks, are no request', async () => {
  const cases = [
    [[HOST, 'Content-Length: 30', 'Content-Length: 31'], BODY], [[HOST, 'Content-Length: 30, 31'], BODY], [[HOST, 'Content-Length: +30'], BODY], [[HOST, 'Content-Length: 0x1e'], BODY],
    [[HOST, 'Content-Length: -1'], BODY], [[HOST, 'Content-Length: 99999999999999999999999'], BODY], [[HOST, 'Content-Length: '], BODY],
    [[HOST, 'Content-Length: 30', 'Transfer-Encoding: chunked'], `1e\r\n${BODY}\r\n0\r\n\r\n`], [[HOST, 'Transfer-Encoding: gzip, chunked'], `1e\r\n${BODY}\r\n0\r\n\r\n`],
    [[HOST, 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], `1e\r\n${BODY}\r\n0\r\n\r\n`], [[HOST, 'Transfer-Encoding: identity'], BODY], [[HOST, 'Transfer-Encoding: chunked'], 'zz\r\nx\r\n0\r\n\r\n'],
    [[HOST, 'Transfer-Encoding: chunked'], 'ffffffffffffffffff\r\nx'],
  ];
  for (const [headers, body] of cases) await refused(request('POST', '/types', headers, body), [400, 413, 501], headers.slice(1).join(' | '));
});

test('hosts that are not ours are refused', async () => {
  for (const [headers, status] of [[['Host: evil.example'], 421], [['Host: evil.example:8750'], 421], [['Host: 127.0.0.1.evil.example'], 421], [[HOST, 'Host: evil.example'], 400], [[HOST, HOST], 400], [[], 400], [['Host: '], [400, 421]], [['Host: [::1'], [400, 421]], [['Host: 8.8.8.8'], 421]]) {
    const r = await refused(request('POST', '/types', [...headers, `Content-Length: ${BODY.length}`], BODY), status, headers.join(' | '));
    assert.ok(isProblem(r), headers.join(' | '));
    if (r.status === 421) assert.match(r.body.toString(), /untrusted-host/);
  }
  for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1:8750', '127.9.9.9', '[::1]:8750']) assert.equal((await raw(server.port, request('GET', '/healthz', [`Host: ${host}`]))).replies[0].status, 200, host);
});

test('broken request lines and headers are refused', async () => {
  for (const bytes of ['GET\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', `GET /\u0001 HTTP/1.1\r\n${HOST}\r\n\r\n`, `GET / HTTP/1.1\r\n${HOST}\r\nno colon\r\n\r\n`, `POST /types HTTP/1.1\r\n${HOST}\r\nContent-Length : 30\r\n\r\n${BODY}`,
    `POST /types HTTP/1.1\r\n${HOST}\r\nA: b\r\n Content-Length: 30\r\n\r\n`, '\u0016\u0003\u0001\u0002\u0000\u0001\u0000', '\r\n'.repeat(10), 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', `GET /%zz HTTP/1.1\r\n${HOST}\r\n\r\n`, `GET http://evil.example/ HTTP/1.1\r\n${HOST}\r\n\r\n`])
    await refused(Buffer.from(bytes, 'latin1'), [400, 404, 411, 414, 421, 431, 501, 505], JSON.stringify(bytes));
});

test('an address with a space in it is a problem that says so', async () => {
  for (const target of ['/types x', '/types HTTP/1.1', '/types?job=a b', '/types\t', '/ty\u0001pes']) {
    const r = await refused(request('POST', target, [HOST, `Content-Length: ${BODY.length}`], BODY), 400, target);
    assert.ok(isProblem(r), target);
    assert.match(JSON.parse(r.body).detail, /space or a control character/, target);
  }
});

test('later versions of HTTP/1 need a Host, too', async () => {
  for (const version of ['1.1', '1.2', '1.9']) assert.ok(isProblem(await refused(Buffer.from(`POST /types HTTP/${version}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`), 400, version)), version);
});

test('methods that do not apply are 405 with the ones that do', async () => {
  for (const [method, target, allow] of [['PUT', '/types', /GET.*POST/], ['PATCH', '/traces', /GET.*POST/], ['DELETE', '/traces', /GET.*POST/], ['POST', '/healthz', /GET/], ['GET', '/traces/x/stop', /POST/], ['BREW', '/types', /GET/], ['TRACE', '/', /GET/]]) {
    const r = await refused(request(method, target, [HOST, 'Content-Length: 0']), [405, 501], `${method} ${target}`);
    if (r?.status === 405) assert.match(r.headers.allow, allow, `${method} ${target}`);
  }
  const options = (await raw(server.port, request('OPTIONS', '/types'))).replies[0];
  assert.equal(options.status, 204);
  assert.match(options.headers.allow, /GET, HEAD, POST/);
});

test('good requests one behind the other are answered in order', async () => {
  const two = Buffer.concat([request('GET', '/healthz'), request('GET', '/version'), request('GET', '/nowhere')]);
  assert.deepEqual((await raw(server.port, two, { replies: 3 })).replies.map((r) => r.status), [200, 200, 404]);
  const chunked = request('POST', '/traces', [HOST, 'Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n');
  assert.equal((await raw(server.port, chunked)).replies[0].status, 201);
  const expect = await raw(server.port, request('POST', '/traces', [HOST, 'Expect: 100-continue', 'Content-Length: 14'], '{"job":"other"}'.slice(0, 14)));
  assert.equal(expect.replies[0].status, 400);
});

test('a header that goes on in the next line is refused', async () => {
  for (const header of ['Content-Type: application/\r\n json', 'X: a\r\n\tb', 'Host: 127.0.0.1\r\n .evil.example', 'Content-Length: 3\r\n 0', 'Transfer-Encoding:\r\n chunked'])
    await refused(request('POST', '/types', [...(header.startsWith('Host') ? [] : [HOST]), header, ...(header.startsWith('Content-L') ? [] : [`Content-Length: ${BODY.length}`])], BODY), [400, 411, 413], JSON.stringify(header));
});

test('what nobody can meet is not expected here', async () => {
  for (const value of ['foo', '100-continue, foo', '200-ok']) {
    const r = await refused(request('POST', '/types', [HOST, `Expect: ${value}`, `Content-Length: ${BODY.length}`], BODY), 417, value);
    assert.match(r.body.toString(), /expectation-failed/);
    assert.equal(r.headers.connection, 'close');
  }
  assert.equal((await raw(server.port, request('GET', '/healthz', [HOST, 'Expect: 100-Continue']))).replies[0].status, 200);
});

test('a whole address is taken when its host is ours, whatever the Host header says', async () => {
  const status = async (target, host) => (await raw(server.port, request('GET', target, [`Host: ${host}`]))).replies[0].status;
  assert.deepEqual(await Promise.all([['http://localhost:8750/v1/types?scope=all', '127.0.0.1'], ['HTTP://LOCALHOST/healthz', 'localhost'], ['http://127.0.0.1:1', 'evil.example']].map((a) => status(...a))), [200, 200, 200]);
  await refused(request('POST', 'http://evil.example/types', [HOST, `Content-Length: ${BODY.length}`], BODY), 421, 'a foreign host in the target');
  await refused(request('POST', 'https://localhost/types', [HOST, `Content-Length: ${BODY.length}`], BODY), 400, 'a scheme that is not spoken here');
});

test('an escape that was not needed changes nothing', async () => {
  const status = async (target) => (await raw(server.port, request('GET', target))).replies[0].status;
  for (const [target, expected] of [['/%74ypes', 200], ['/v%31/t%79pes', 200], ['/types/%6Bernel', 200], ['/%2ftypes', 404], ['/types%2Fkernel', 404], ['/types/%256Bernel', 404], ['/types/kernel%00', 400], ['/types/%zz', 400]])
    assert.equal(await status(target), expected, target);
});
