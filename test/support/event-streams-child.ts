/** Reads streams of events for `event-streams.ts`, and reports what has come. Arguments: URL, number of streams. */
import { connect, type Socket } from 'node:net';
import type { EventCounts } from './event-streams.js';

const [url = '', count = '0'] = process.argv.slice(2);
const { hostname, port, pathname, search } = new URL(url);
const REQUEST = `GET ${pathname}${search} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const HEAD_END = '\r\n\r\n';
/** Opened at a time, so that pending connections fit the server's backlog. */
const AT_ONCE = 200;
const REPORT_MS = 500;

interface EventStream {
  /** The id of the last event. */
  last: number;
  /** The last chunk has come, or all that follows it. */
  end: 'none' | 'coming' | 'complete';
  /** What has come of a line, or of the head. */
  rest: string;
}

const open = new Set<EventStream>();
/** How many events have taken so many whole milliseconds. */
const delays: number[] = [];
const seen = { complete: 0, broken: 0, events: 0, misplaced: 0 };
let begun = 0;

function openNext(): void {
  if (begun === Number(count)) return;
  begun++;
  const stream: EventStream = { last: 0, end: 'none', rest: '' };
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  socket.on('connect', () => socket.write(REQUEST));
  socket.on('data', (text: string) => {
    stream.rest += text;
    if (!open.has(stream) && !takeHead(stream, socket)) return;
    takeLines(stream);
    if (stream.end === 'complete') socket.destroy();
  });
  socket.on('error', () => undefined); // `close` follows
  socket.on('close', () => {
    if (!open.delete(stream)) openNext();
    seen[stream.end === 'complete' ? 'complete' : 'broken']++;
  });
}

/** @returns whether it has come, and what follows it is to be read */
function takeHead(stream: EventStream, socket: Socket): boolean {
  const end = stream.rest.indexOf(HEAD_END);
  if (end === -1) return false;
  if (!stream.rest.startsWith('HTTP/1.1 200 ')) {
    socket.destroy();
    return false;
  }
  stream.rest = stream.rest.slice(end + HEAD_END.length);
  open.add(stream);
  openNext();
  return true;
}

/** Lines of events end with a line feed, those of chunks with a carriage return before it. */
function takeLines(stream: EventStream): void {
  const now = (performance.timeOrigin + performance.now()) * 1000;
  const lines = stream.rest.split('\n');
  stream.rest = lines.pop() ?? '';
  for (const line of lines) {
    if (line.startsWith('id: ')) {
      const id = Number(line.slice('id: '.length));
      if (id !== stream.last + 1) seen.misplaced++;
      stream.last = id;
      seen.events++;
    } else if (line.startsWith('data: ')) {
      const ms = Math.max(0, Math.floor((now - Number(line.slice('data: '.length))) / 1000));
      delays[ms] = (delays[ms] ?? 0) + 1;
    } else if (line === '0\r') stream.end = 'coming';
    else if (line === '\r' && stream.end === 'coming') stream.end = 'complete';
  }
}

function report(): EventCounts {
  let fewest = open.size === 0 ? 0 : Number.POSITIVE_INFINITY;
  for (const { last } of open) fewest = Math.min(fewest, last);
  return {
    ...{ ...seen, open: open.size, fewest },
    delay: { p50: delayOf(0.5), p99: delayOf(0.99), most: Math.max(0, delays.length - 1) },
  };
}

/** The whole milliseconds within which this share of the events were here. */
function delayOf(share: number): number {
  let missing = seen.events * share;
  return Math.max(
    0,
    delays.findIndex((events = 0) => {
      missing -= events;
      return missing <= 0;
    }),
  );
}

for (let at = 0; at < AT_ONCE; at++) openNext();
setInterval(() => process.send?.(report()), REPORT_MS);
process.once('disconnect', () => process.exit());
