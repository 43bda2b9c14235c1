/**
 * Holds connections for `connections.ts`, and reports their states. Arguments: URL, number of connections, number of
 * those that send a request.
 */
import { connect } from 'node:net';

const [url = '', count = '0', askEvery = '1'] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(url);
const REQUEST = `GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
/** Opened at a time, so that pending connections fit the server's backlog. */
const AT_ONCE = 200;

const answered: Record<string, number> = {};
let begun = 0;
let opened = 0;
let closed = 0;

function openNext(): void {
  if (begun === Number(count)) return;
  const asks = begun++ % Number(askEvery) === 0;
  const socket = connect(Number(port), hostname);
  let isOpen = false;
  const next = () => {
    if (!isOpen) openNext();
    isOpen = true;
  };
  socket.once('connect', () => {
    opened++;
    next();
    if (asks) socket.write(REQUEST);
  });
  socket.on('data', (data) => {
    const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(data.toString('latin1')) ?? [];
    if (status !== undefined) answered[status] = (answered[status] ?? 0) + 1;
  });
  socket.on('error', next);
  socket.once('close', () => {
    if (isOpen) closed++;
    next();
  });
}

for (let at = 0; at < AT_ONCE; at++) openNext();
setInterval(() => process.send?.({ open: opened - closed, answered, closed }), 100);
process.once('disconnect', () => process.exit());
