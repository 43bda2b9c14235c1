/** One stream that tells which kinds of objects have changed, for pages that show them and are open for long. */
import { setTimeout as delay } from 'node:timers/promises';
import { Type } from '@sinclair/typebox';
import type { Changes } from '../../reconcile/changes.js';
import type { Topic } from '../../store/announcements.js';
import { newestUi } from '../pages/ui-build.js';
import { event, eventStream } from '../response/event-stream.js';
import { defineRoute } from '../route/route.js';

/** What is told of each topic. */
const KINDS = {
  audit: 'change',
  endpoint: 'endpoint',
  observation: 'endpoint',
  build: 'build',
  service: 'service',
  service_observation: 'service',
  import: 'import',
  apply: 'apply',
  node: 'node',
} as const satisfies Partial<Record<Topic, string>>;
const TOPICS = Object.keys(KINDS) as (keyof typeof KINDS)[];
/** A page that hears nothing for some of these knows that its connection is dead: `ui/src/api/live.ts`. */
const ALIVE_MS = 5_000;
/** A page reads what it shows before it follows: what changed so long before that is told, too. */
const BEFORE_MS = 10_000;
/** Changes of so long are one event. */
const COLLECT_MS = 500;

export const eventRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/events',
    permission: 'authenticated',
    summary:
      'Follow what changes: server-sent events `change` with the kinds of objects, not which ones; `change` among them stands for any change by the API. The first event is `open`, with the build of the web UI; `alive` comes when there is nothing to tell',
    tag: 'System',
    envelope: 'bare',
    data: Type.String({ description: 'Server-sent events' }),
    produces: 'text/event-stream',
    handle: async (request, deps) =>
      // A change may be that of who may read this, whose page would read all it shows once more, and be refused.
      eventStream(deps, request, (closed) => changeEvents(deps.changes, closed), 0),
  }),
];

async function* changeEvents(changes: Changes, closed: AbortSignal): AsyncGenerator<string, undefined, void> {
  const before = TOPICS.filter((topic) => changes.hasChangedWithin(topic, BEFORE_MS));
  const kinds = new Set<string>(before.map((topic) => KINDS[topic]));
  let awake = new AbortController();
  if (kinds.size > 0) awake.abort();
  const add = (kind: string) => {
    kinds.add(kind);
    awake.abort();
  };
  const subscriptions = [
    ...TOPICS.map((topic) => changes.onChange(topic, () => add(KINDS[topic]))),
    // Some may have been missed.
    changes.onConnected(() => Object.values(KINDS).forEach(add)),
  ];
  const pause = (ms: number, until: AbortSignal) =>
    delay(ms, undefined, { signal: until }).catch(() => undefined); // woken
  try {
    // A client knows by it that it is connected.
    yield event('open', 0, { ui: (await newestUi())?.id ?? null });
    for (let id = 1; ; id++) {
      await pause(ALIVE_MS, AbortSignal.any([closed, awake.signal]));
      await pause(COLLECT_MS, closed);
      if (closed.aborted) return undefined;
      const changed = [...kinds];
      kinds.clear();
      awake = new AbortController();
      // Not a comment: pages do not see those.
      yield changed.length > 0 ? event('change', id, { kinds: changed }) : event('alive', id, {});
    }
  } finally {
    for (const end of subscriptions) end();
  }
}
