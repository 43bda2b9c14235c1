/** Prefetches the log of an endpoint while the endpoint itself is read. */
import { LogFeed } from './feed.js';
import type { LogFilter } from './filter.js';

let prefetched: LogFeed | undefined;

/** Begins to read a log that will be shown soon. @param left aborted when it ends, unless it is shown */
export function beginLog(endpointId: string, filter: LogFilter, left: AbortSignal): void {
  if (left.aborted) return;
  prefetched?.close();
  const feed = new LogFeed(endpointId, filter);
  prefetched = feed;
  feed.start();
  left.addEventListener('abort', () => {
    if (prefetched !== feed) return;
    prefetched = undefined;
    feed.close();
  });
}

/** The log that was prefetched, if it is this one, or a new one. */
export function openLog(endpointId: string | undefined, filter: LogFilter): LogFeed {
  const feed = prefetched;
  prefetched = undefined;
  const isSame = (one: LogFeed) =>
    one.endpointId === endpointId && JSON.stringify(one.filter) === JSON.stringify(filter);
  if (feed && isSame(feed)) return feed;
  feed?.close();
  return new LogFeed(endpointId, filter);
}
