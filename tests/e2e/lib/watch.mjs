// Reads the server-sent events of GET /traces/{id}/watch.
import http from 'node:http';
import { note } from './contract.mjs';

// Open a watch. Resolves with {messages (grows), next(test), ended (a promise), close()} once the headers are there.
export function watch(server, id) {
  return new Promise((resolve, reject) => {
    const req = http.get({ host: '127.0.0.1', port: server.port, path: `/v1/traces/${id}/watch`, agent: false }, (res) => {
      note({ id: 'watchTrace', status: String(res.statusCode), key: String(res.statusCode), type: String(res.headers['content-type']).split(';')[0], method: 'GET' });
      const w = { status: res.statusCode, headers: res.headers, messages: [], waiting: [], isOver: false };
      let text = '';
      res.setEncoding('utf8');
      res.on('data', (chunk) => {
        text += chunk;
        for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
          const fields = Object.fromEntries(text.slice(0, end).split('\n').filter((l) => !l.startsWith(':')).map((l) => [l.slice(0, l.indexOf(':')), l.slice(l.indexOf(':') + 2)]));
          if (fields.data !== undefined) w.messages.push({ event: fields.event, id: fields.id, at: Date.now(), data: JSON.parse(fields.data) });
        }
        wake(w);
      });
      w.ended = new Promise((done) => res.on('close', () => { w.isOver = true; wake(w); done(); }));
      w.close = () => req.destroy();
      // The first message, present or future, that fits; rejects when the stream ends without one.
      w.next = (fits) => new Promise((found, lost) => { w.waiting.push({ fits, found, lost }); wake(w); });
      resolve(w);
    });
    req.on('error', reject);
  });
}

function wake(w) {
  w.waiting = w.waiting.filter(({ fits, found, lost }) => {
    const m = w.messages.find(fits);
    if (m) found(m);
    else if (w.isOver) lost(new Error(`the watch ended after ${JSON.stringify(w.messages.map((x) => [x.event, x.data.state]))}`));
    return !m && !w.isOver;
  });
}
