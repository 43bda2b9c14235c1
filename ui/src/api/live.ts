/** Follows what changes in the gateway, so that what is shown is what is there, in all tabs. */
import { effect, signal } from '@preact/signals';
import { whenUnreachable } from './client.js';
import { invalidate } from './query.js';
import { checkSession, isExpired, me } from './session.js';

export type Connection = 'live' | 'lost';

export const connection = signal<Connection>('live');
/** Set when the gateway has another build of the UI than this page is of. */
export const isOutdated = signal(false);

const BUILD = document.querySelector<HTMLMetaElement>('meta[name=edge-build]')?.content;
/** Said only when it is lost for so long: a restart of the server is shorter. */
const LOST_AFTER_MS = 3_000;
/** The server says something every 5 seconds: a connection that is silent for longer is dead, whatever it says. */
const SILENT_AFTER_MS = 12_000;
/** What is read again when something of a kind has changed; figures and logs have their own pace. */
const AFFECTED: Readonly<Record<string, readonly string[]>> = {
  change: [
    ...['/api/domains', '/api/collections', '/api/endpoints', '/api/overview', '/api/services'],
    ...['/api/users', '/api/tokens'],
    ...['/api/sessions', '/api/alerts', '/api/secrets', '/api/audit', '/api/jobs', '/api/session'],
  ],
  endpoint: ['/api/endpoints', '/api/overview', '/api/stats'],
  // What is compiled is a version of its endpoints.
  build: ['/api/builds', '/api/endpoints', '/api/health'],
  service: ['/api/services'],
  import: ['/api/imports'],
  apply: ['/api/applies'],
  node: ['/api/nodes', '/api/health'],
};

let source: EventSource | undefined;
let lostTimer: number | undefined;
let silenceTimer: number | undefined;
/** Whether what is shown may have changed unnoticed. */
let hasMissed = false;

/** Connected while the API knows who this is: others are refused. */
effect(() => {
  const isNeeded = Boolean(me.value?.kind) && !isExpired.value;
  if (isNeeded && !source) connect();
  else if (!isNeeded) leave();
});
addEventListener('online', () => source && reconnect());
addEventListener('offline', () => source && lost());
whenUnreachable(() => {
  if (!source) return;
  lost();
  reconnect();
});

function connect(): void {
  source = new EventSource('/api/events');
  source.addEventListener('open', (event: Event) => {
    // The browser has an event of this name, too.
    if (event instanceof MessageEvent) opened(JSON.parse(event.data) as { readonly ui: string | null });
  });
  source.addEventListener('alive', heard);
  source.addEventListener('change', ({ data }: MessageEvent<string>) => {
    heard();
    const { kinds } = JSON.parse(data) as { kinds: readonly string[] };
    invalidate(...new Set(kinds.flatMap((kind) => AFFECTED[kind] ?? [])));
  });
  source.addEventListener('error', () => {
    missing();
    // Refused: the browser does not try again by itself.
    if (source?.readyState === EventSource.CLOSED) {
      disconnect();
      void connectAgain();
    }
  });
  heard();
}

/** After a refusal: who this is may have changed. */
async function connectAgain(): Promise<void> {
  await checkSession().catch(() => undefined); // it cannot be reached either
  setTimeout(() => {
    if (me.peek()?.kind && !isExpired.peek() && !source) connect();
  }, LOST_AFTER_MS);
}

/** Not lost: there is nobody to tell. */
function leave(): void {
  if (!source && lostTimer === undefined) return;
  disconnect();
  clearTimeout(lostTimer);
  lostTimer = undefined;
  connection.value = 'live';
  hasMissed = true;
}

function disconnect(): void {
  source?.close();
  source = undefined;
  clearTimeout(silenceTimer);
}

function reconnect(): void {
  missing();
  disconnect();
  connect();
}

function opened({ ui }: { readonly ui: string | null }): void {
  clearTimeout(lostTimer);
  lostTimer = undefined;
  heard();
  connection.value = 'live';
  isOutdated.value = ui !== null && BUILD !== undefined && ui !== BUILD;
  // What happened meanwhile is made up for; what is shown stays until then.
  if (hasMissed) {
    invalidate('/api/');
    // The server also ends it when whoever follows is somebody else now.
    checkSession().catch(() => undefined); // the next loss of the connection says it
  }
  hasMissed = false;
}

function heard(): void {
  clearTimeout(silenceTimer);
  silenceTimer = window.setTimeout(reconnect, SILENT_AFTER_MS);
}

function missing(): void {
  hasMissed = true;
  lostTimer ??= window.setTimeout(lost, LOST_AFTER_MS);
}

function lost(): void {
  hasMissed = true;
  connection.value = 'lost';
}
