/** One line of the log: when, how serious, what was said, and of which request. */
import { Link } from 'wouter-preact';
import { once } from '../../base/once.js';
import { duration } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { LogEntry } from '../../generated/routes.js';
import { addressOfPlace, codePlaceOf } from '../code-place.js';

export interface LogLineProps {
  readonly entry: LogEntry;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
  /** Undefined where only one request is shown. */
  readonly onRequest: ((requestId: string) => void) | undefined;
}

export function LogLine({ entry, isOpen, onOpen, onRequest }: LogLineProps) {
  const { level, request_id: requestId } = entry;
  return (
    <>
      <LogTime at={entry.at} />
      <Level level={level} />
      <button type="button" class="said" aria-expanded={isOpen} onClick={onOpen}>
        <span class="truncate">
          <Said entry={entry} />
        </span>
      </button>
      <Place entry={entry} />
      {requestId !== null && onRequest && (
        <button
          type="button"
          class="of-request"
          title={`Only request ${requestId}`}
          onClick={() => onRequest(requestId)}
        >
          {shortened(requestId)}
        </button>
      )}
    </>
  );
}

const SHOWN_OF_ID = 18;

/** An id without its middle: those of requests that came together begin alike, and end differently. */
function shortened(id: string): string {
  if (id.length <= SHOWN_OF_ID) return id;
  const half = (SHOWN_OF_ID - 2) / 2;
  return `${id.slice(0, half)}…${id.slice(-half)}`;
}

/** The level of an entry, by colour and by its word. */
export function Level({ level }: Pick<LogEntry, 'level'>) {
  return <span class={`level ${level}`}>{level}</span>;
}

/** What a target is called that is not a module of the handler. */
const MAKERS = new Set(['panic', 'sdk', 'service', 'gateway', 'stdout', 'stderr']);

function Said({ entry }: { readonly entry: LogEntry }) {
  const target = entry.fields?.['target'];
  return (
    <>
      {typeof target === 'string' && MAKERS.has(target) && <span class="maker">{target}</span>}
      {entry.kind === 'request' && <RequestLine entry={entry} />}
      {entry.message !== '' && <Visible text={entry.message} isOneLine />}
      <Fields entry={entry} />
    </>
  );
}

/** What became of a request. */
export function RequestLine({ entry }: { readonly entry: LogEntry }) {
  const { method, path, status, duration_ms: ms } = entry;
  return (
    <span class="request-line">
      <strong>{method}</strong> <Visible text={path ?? ''} isOneLine />{' '}
      <strong class={status !== null && status >= 500 ? 'bad' : undefined}>{status}</strong>
      {ms !== null && <span class="muted"> {duration(ms)}</span>}{' '}
    </span>
  );
}

/** Key-values, after the message. */
function Fields({ entry: { fields } }: { readonly entry: LogEntry }) {
  const others = Object.entries(fields ?? {}).filter(([name]) => name !== 'target' && name !== 'place');
  if (others.length === 0) return null;
  return (
    <span class="muted">
      {others.map(([name, value]) => (
        <span key={name}>
          {' '}
          <Visible text={`${name}=${textOf(value)}`} isOneLine />
        </span>
      ))}
    </span>
  );
}

/** A value of a field, as one would write it. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Where a panic or an error was, as a link to that line of the code. */
export function Place({ entry: { endpoint_id: id, fields } }: { readonly entry: LogEntry }) {
  const text = fields?.['place'];
  if (typeof text !== 'string') return null;
  const place = codePlaceOf(text);
  if (!place) return <Visible text={text} isOneLine />;
  return (
    <Link class="place mono" href={addressOfPlace(id, place)}>
      <Visible text={text} isOneLine />
    </Link>
  );
}

const FULL = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' }));
const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 } as const;
const TODAY = once(() => new Intl.DateTimeFormat(undefined, { ...CLOCK, hourCycle: 'h23' }));
const OTHER_DAY = once(
  () =>
    new Intl.DateTimeFormat(undefined, {
      ...{ month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' },
      hourCycle: 'h23',
    }),
);

function LogTime({ at }: Pick<LogEntry, 'at'>) {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return (
    <time dateTime={at} title={FULL().format(date)}>
      {(isToday ? TODAY : OTHER_DAY)().format(date)}
    </time>
  );
}
