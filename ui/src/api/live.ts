/** Follows what changes in the gateway, so that what is shown is what is there, in all tabs. */
import { signal } from '@preact/signals';
import { invalidate } from './query.js';
import { me } from './session.js';

export type Connection = 'live' | 'lost';

export const connection = signal<Connection>('live');
/** Set when the gateway runs another version than this page is of. */
export const isOutdated = signal(false);

const VERSION = document.querySelector<HTMLMetaElement>('meta[name=edge-version]')?.content;
/** Said only when it is lost for so long: a restart of the server is shorter. */
const LOST_AFTER_MS = 3_000;
/** What is read again when something of a kind has changed; figures and logs have their own pace. */
const AFFECTED: Readonly<Record<string, readonly string[]>> = {
  change: [
    ...['/api/domains', '/api/collections', '/api/endpoints', '/api/overview', '/api/services'],
    ...['/api/users', '/api/tokens'],
    ...['/api/sessions', '/api/alerts', '/api/secrets', '/api/audit', '/api/jobs', '/api/session'],
  ],
  endpoint: ['/api/endpoints', '/api/overview', '/api/stats'],
  build: ['/api/builds', '/api/health'],
  service: ['/api/services'],
  import: ['/api/imports'],
  apply: ['/api/applies'],
  node: ['/api/nodes', '/api/health'],
};

let source: EventSource | undefined;
let lostTimer: number | undefined;

/** Connects as soon as the API knows who this is. */
me.subscribe((value) => {
  if (value?.kind && !source) connect();
  else if (!value?.kind && source) disconnect();
});

function connect(): void {
  source = new EventSource('/api/events');
  source.addEventListener('open', () => {
    clearTimeout(lostTimer);
    lostTimer = undefined;
    // What happened meanwhile is made up for.
    if (connection.peek() === 'lost') readAllAgain();
    connection.value = 'live';
    void checkVersion();
  });
  source.addEventListener('error', () => {
    lostTimer ??= window.setTimeout(() => {
      connection.value = 'lost';
    }, LOST_AFTER_MS);
    // Refused: the browser does not try again by itself.
    if (source?.readyState === EventSource.CLOSED) {
      disconnect();
      setTimeout(() => {
        if (me.peek()?.kind && !source) connect();
      }, LOST_AFTER_MS);
    }
  });
  source.addEventListener('change', ({ data }: MessageEvent<string>) => {
    const { kinds } = JSON.parse(data) as { kinds: readonly string[] };
    invalidate(...new Set(kinds.flatMap((kind) => AFFECTED[kind] ?? [])));
  });
}

function disconnect(): void {
  source?.close();
  source = undefined;
}

/** Reads all again that is shown, and keeps showing it meanwhile. */
function readAllAgain(): void {
  invalidate('/api/');
}

async function checkVersion(): Promise<void> {
  const response = await fetch('/api/health').catch(() => undefined);
  if (!response?.ok) return;
  const { data } = (await response.json()) as { data: { version: string } };
  if (VERSION !== undefined && data.version !== VERSION) isOutdated.value = true;
}
