// HTTP as no client library would send it: bytes on a socket, and what comes back.
import net from 'node:net';

// Send bytes, wait until the server closes, a complete reply is there, or quietMs pass without a byte. `half` closes our side after
// sending. Resolves with {replies: [{status, headers, body}], closed, text}.
export function raw(port, bytes, { half = false, quietMs = 60000, replies = 1 } = {}) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    const chunks = [];
    let timer = null;
    const finish = (closed) => {
      clearTimeout(timer);
      socket.destroy();
      const data = Buffer.concat(chunks);
      resolve({ replies: parseReplies(data), closed, text: data.toString('latin1') });
    };
    const rearm = () => { clearTimeout(timer); timer = setTimeout(() => finish(false), quietMs); };
    socket.on('connect', () => { rearm(); half ? socket.end(bytes) : socket.write(bytes); });
    socket.on('data', (c) => {
      chunks.push(c);
      rearm();
      const got = parseReplies(Buffer.concat(chunks));
      if (got.length >= replies && got.every((r) => r.isComplete) && got[got.length - 1].headers.connection !== 'close') finish(false);
    });
    socket.on('close', () => finish(true));
    socket.on('error', () => finish(true));
  });
}

// The replies in a stream of bytes; the last may be incomplete.
export function parseReplies(data) {
  const replies = [];
  let at = 0;
  while (at < data.length) {
    const end = data.indexOf('\r\n\r\n', at);
    if (end < 0) break;
    const lines = data.subarray(at, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(lines.slice(1).map((l) => [l.slice(0, l.indexOf(':')).toLowerCase(), l.slice(l.indexOf(':') + 1).trim()]));
    const length = Number(headers['content-length'] ?? 0);
    const body = data.subarray(end + 4, end + 4 + length);
    const status = Number(lines[0].split(' ')[1]);
    at = end + 4 + length;
    if (status >= 200) replies.push({ status, headers, body, isComplete: body.length === length && headers['transfer-encoding'] === undefined });
  }
  return replies;
}

// A request as bytes; headers as a list of lines.
export function request(method, target, headers = ['Host: 127.0.0.1'], body = '') {
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${headers.map((h) => h + '\r\n').join('')}\r\n`, 'latin1'), Buffer.from(body)]);
}
