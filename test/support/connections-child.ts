/**
 * Holds connections for `connections.ts`, and reports their states. Arguments: those of `openConnections`.
 */
import { connect } from 'node:net';

const [url = '', ...numbers] = process.argv.slice(2);
const [count = 0, askEvery = 1, atOnce = 1] = numbers.map(Number);
const { hostname, port, pathname } = new URL(url);
const REQUEST = `GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

const answered: Record<string, number> = {};
const unanswered: Record<string, number> = {};
let begun = 0;
/** Those of which it is certain that the server has accepted them, or that it will not. */
let settled = 0;
let opened = 0;
let closed = 0;

function openMore(): void {
  while (begun < count && begun - settled < atOnce) open(begun++ % askEvery === 0);
}

function open(asks: boolean): void {
  const socket = connect(Number(port), hostname);
  const startedAt = performance.now();
  let isOpen = false;
  let hasAnswer = false;
  let reason = 'closed';
  /** A server accepts them in their order: after one that has an answer, those that sent nothing are accepted, too. */
  const settle = () => {
    if (asks) settled += askEvery;
    asks = false;
    openMore();
  };
  socket.once('connect', () => {
    isOpen = true;
    opened++;
    if (asks) socket.write(REQUEST);
  });
  socket.on('data', (data) => {
    const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(data.toString('latin1')) ?? [];
    if (status === undefined) return;
    answered[status] = (answered[status] ?? 0) + 1;
    hasAnswer = true;
    settle();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    reason = error.code ?? error.message;
  });
  socket.once('close', () => {
    if (isOpen) closed++;
    if (!hasAnswer) {
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      const how = `${reason} after ${seconds} s${isOpen ? '' : ', never open'}`;
      unanswered[how] = (unanswered[how] ?? 0) + 1;
    }
    settle();
  });
}

openMore();
setInterval(() => process.send?.({ open: opened - closed, answered, unanswered, closed }), 100);
process.once('disconnect', () => process.exit());
