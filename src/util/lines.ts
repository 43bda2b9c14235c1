/** Texts, one to a line, from a stream whose pieces end anywhere. */
import type { Readable } from 'node:stream';

/**
 * Calls `receive` with each line.
 * @param longest characters of a line; a stream with a longer one is destroyed
 */
export function readLines(
  stream: Readable,
  receive: (line: string) => void,
  longest = Number.POSITIVE_INFINITY,
): void {
  let partial = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    const lines = text.split('\n');
    lines[0] = partial + lines[0];
    partial = lines.pop() ?? '';
    for (const line of lines) receive(line);
    if (partial.length > longest) stream.destroy();
  });
}
