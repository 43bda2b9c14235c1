/** A log that is begun before what shows it is there: while the endpoint is read. */
import { LogFeed } from './feed.js';
import type { LogFilter } from './filter.js';

let begun: LogFeed | undefined;

/** Begins to read a log that will be shown soon. @param left aborted when it ends, unless it is shown */
export function beginLog(endpointId: string, filter: LogFilter, left: AbortSignal): void {
  if (left.aborted) return;
  begun?.close();
  const feed = new LogFeed(endpointId, filter);
  begun = feed;
  feed.start();
  left.addEventListener('abort', () => {
    if (begun !== feed) return;
    begun = undefined;
    feed.close();
  });
}

/** The log that was begun, if it is this one, or a new one. */
export function openLog(endpointId: string | undefined, filter: LogFilter): LogFeed {
  const feed = begun;
  begun = undefined;
  const isSame = (one: LogFeed) =>
    one.endpointId === endpointId && JSON.stringify(one.filter) === JSON.stringify(filter);
  if (feed && isSame(feed)) return feed;
  feed?.close();
  return new LogFeed(endpointId, filter);
}
