/** Entries of the log: as a terminal shows them, and as they come. */
import { Retries } from './following.js';
import type { LogEntry } from './generated/routes.js';
import type { Output } from './output.js';
import type { Session } from './session.js';
import { type Colour, safeLine, safeText, timeOf } from './text.js';

const COLOURS: Readonly<Record<LogEntry['level'], Colour>> = {
  trace: 'dim',
  debug: 'dim',
  info: 'green',
  warn: 'yellow',
  error: 'red',
};
/** Fields that have a place of their own, or say nothing to a reader. */
const SHOWN_APART = ['target', 'place'];

export function showEntry(out: Output, entry: LogEntry): void {
  const { at, level, kind, version, request_id, message, fields } = entry;
  const head = `${out.paint('dim', timeOf(at))} ${out.paint(COLOURS[level], level.padEnd(5))}`;
  const place = fields?.['place'];
  const content =
    kind === 'request'
      ? `${entry.method} ${entry.path} ${out.paint(colourOf(entry.status), String(entry.status))} ${milliseconds(entry.duration_ms)} ms ${safeLine(message)}`
      : `${safeText(message)}${typeof place === 'string' ? ` (${safeLine(place)})` : ''}`;
  const others = Object.entries(fields ?? {})
    .filter(([name]) => !SHOWN_APART.includes(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const tail = [
    ...others,
    ...(version === null ? [] : [`v${version}`]),
    ...(request_id === null ? [] : [request_id]),
  ];
  const safe = kind === 'request' ? content.trimEnd() : content.replaceAll('\n', '\n    ');
  out.line(`${head} ${safe}  ${out.paint('dim', safeLine(tail.join(' ')))}`.trimEnd());
}

function milliseconds(duration: number | null): string {
  return duration === null ? '?' : duration.toFixed(duration < 10 ? 2 : 0);
}

function colourOf(status: number | null): Colour {
  if (status === null || status >= 500) return 'red';
  return status >= 400 ? 'yellow' : 'green';
}

/**
 * Entries as they come, without an end. When the connection breaks, it goes on after the last entry that was seen:
 * nothing is missing, and nothing comes twice.
 */
export async function* followLogs(
  session: Session,
  query: Readonly<Record<string, string | number>>,
): AsyncGenerator<LogEntry, void, void> {
  const retries = new Retries(session);
  for (let last: string | undefined; ; ) {
    try {
      for await (const event of session.api.events('GET /api/logs', { query }, last)) {
        last = event.id ?? last;
        retries.answered();
        if (event.name === 'entry') yield event.data as LogEntry;
      }
      retries.answered();
    } catch (thrown) {
      if (!retries.canHelp(thrown)) throw thrown;
    }
    await retries.pause();
  }
}
