/** Streams of the soak that have no end. */
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Landscape, SoakEndpoint } from './landscape.js';

/** A client leaves after at most so long. */
const LONGEST_MS = 5_000;

/** What a stream of so many lines is. */
export function streamOf(answer: string, lines: number): string {
  return Array.from({ length: lines }, (_, line) => `${answer} ${line}\n`).join('');
}

/**
 * Reads a stream without end for a while, and leaves.
 * @throws Error when other lines come than should, or it ends though its endpoint was not changed
 */
export async function readEndless({ stack }: Landscape, endpoint: SoakEndpoint, n: number): Promise<void> {
  const before = { variants: [...endpoint.variants], changes: endpoint.changes };
  const mayHaveEnded = () => before.changes % 2 === 1 || before.changes !== endpoint.changes;
  const response = await open(`${stack.gatewayUrl}${endpoint.path}/${n}?use=endless`);
  if (response.statusCode === 503 && mayHaveEnded()) {
    response.destroy();
    return;
  }
  if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}`);
  const seen: { text: string; end: string | undefined } = { text: '', end: undefined };
  response.setEncoding('utf8').on('data', (text: string) => {
    seen.text += text;
  });
  response.on('end', () => {
    seen.end = 'it has come to an end';
  });
  response.on('error', ({ message }) => {
    seen.end = message;
  });
  const until = performance.now() + Math.random() * LONGEST_MS;
  while (performance.now() < until && seen.end === undefined) await delay(20);
  const { text, end } = seen;
  response.destroy();
  // Cut off, which is not an end.
  if (end !== undefined && !(end === 'aborted' && mayHaveEnded())) throw new Error(end);
  const lines = text.split('\n').slice(0, -1);
  const isAs = (answer: string) => lines.every((line, at) => line === `${answer} ${at}`);
  if (![...before.variants, ...endpoint.variants].some((variant) => isAs(`${variant} ${n}`)))
    throw new Error(`wrong lines: ${text.slice(0, 100)}`);
}

function open(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, { agent: false }, resolve).on('error', reject).end();
  });
}
