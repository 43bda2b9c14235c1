/** The log of an endpoint, or of all: what was written and what comes, in one list, the newest at its end. */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Link, useSearchParams } from 'wouter-preact';
import { useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { Button } from '../../base/controls.js';
import { FollowingList } from '../../base/following-list.js';
import { Empty, ErrorNotice, Skeleton } from '../../base/notices.js';
import { Badge, count, type Tone } from '../../base/text.js';
import { useMedia } from '../../base/use-media.js';
import { Visible } from '../../base/visible.js';
import type { Endpoint, LogEntry } from '../../generated/routes.js';
import type { FeedState, LogFeed } from './feed.js';
import { filterOf, type LogFilter, withFilter } from './filter.js';
import { LogEntryDetails } from './log-entry-details.js';
import { isAtFilter, LogFilters } from './log-filters.js';
import { LogLine, type LogLineProps } from './log-line.js';
import { beginLog, openLog } from './prefetch.js';
import { RequestSummary } from './request-summary.js';

const ROW = 28;
/** On small screens what was said is below all else, in up to two lines. */
const TALL_ROW = 60;

/** @param endpoint undefined: the log of all */
export function LogsTab({ endpoint }: { readonly endpoint?: Endpoint }) {
  const [address, setAddress] = useSearchParams();
  const filter = filterOf(address);
  const key = JSON.stringify(filter);
  const feed = useMemo(() => openLog(endpoint?.id, filter), [endpoint?.id, key]);
  // With other filters a paused log stays paused.
  const wasPaused = useRef(false);
  useLayoutEffect(() => {
    feed.start(wasPaused.current);
    return () => {
      wasPaused.current = feed.isPaused.peek();
      feed.close();
    };
  }, [feed]);
  const show = (chosen: LogFilter, replace: boolean) =>
    setAddress((current) => withFilter(current, chosen), { replace });
  if (!may('logs:read'))
    return (
      <Empty title="You may not read logs">
        <p>An administrator can give you the permission logs:read.</p>
      </Empty>
    );
  return (
    <div class="stack logs">
      <LogFilters
        filter={filter}
        error={feed.error.value}
        onChange={(chosen) => show(chosen, (filter.request_id ?? '') === (chosen.request_id ?? ''))}
      />
      {filter.request_id !== undefined && <RequestSummary feed={feed} requestId={filter.request_id} />}
      <Log key={key} feed={feed} onRequest={(requestId) => show({ request_id: requestId }, false)} />
    </div>
  );
}

/** Begins to read the log that will be shown for this address. */
LogsTab.ahead = (endpointId: string, left: AbortSignal) => {
  beginLog(endpointId, filterOf(new URLSearchParams(location.search)), left);
};

interface LogProps {
  readonly feed: LogFeed;
  readonly onRequest: (requestId: string) => void;
}

function Log({ feed, onRequest }: LogProps) {
  const [isFollowing, setFollowing] = useState(true);
  const [open, setOpen] = useState<LogEntry>();
  const isNarrow = useMedia('(max-width: 700px)');
  const { filter } = feed;
  const rows = feed.revision.value >= 0 ? feed.rows : [];
  const error = feed.error.value;
  const isEmpty = rows.length === 0;
  return (
    <>
      {error && !isAtFilter(error) && (
        <ErrorNotice error={error} {...(isEmpty ? {} : { onRetry: () => void feed.older() })} />
      )}
      <div class="card log">
        <Toolbar feed={feed} isFollowing={isFollowing} onFollow={() => setFollowing(true)} />
        {isEmpty && feed.isLoading.value && (
          <div class="log-empty">
            <Skeleton lines={6} />
          </div>
        )}
        {isEmpty && !feed.isLoading.value && !error && <NothingYet filter={filter} />}
        <Beginning feed={feed} />
        {!isEmpty && (
          <FollowingList
            label="Log entries, the newest last"
            count={rows.length}
            rowHeight={isNarrow ? TALL_ROW : ROW}
            shift={feed.shift}
            isFollowing={isFollowing && filter.until === undefined}
            onScroll={({ isAtEnd, isNearStart }) => {
              setFollowing(isAtEnd);
              if (isNearStart && !isAtEnd) void feed.older();
            }}
            row={(index) => {
              const row = rows[index];
              if (!row) return { key: String(index), content: null };
              const { key, entry, note } = row;
              if (!entry) return { key, class: 'note', content: note };
              const Line = feed.endpointId === undefined ? LineOfAll : LogLine;
              const line = {
                ...{ entry, isOpen: entry === open, onOpen: () => setOpen(entry) },
                onRequest: filter.request_id === undefined ? onRequest : undefined,
              };
              return { key, class: `line ${entry.level}`, content: <Line {...line} /> };
            }}
          />
        )}
      </div>
      {open && <LogEntryDetails entry={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}

/** A line with the endpoint that it is of. */
function LineOfAll(line: LogLineProps) {
  return (
    <>
      <LogLine {...line} />
      <OfEndpoint id={line.entry.endpoint_id} />
    </>
  );
}

function OfEndpoint({ id }: { readonly id: string }) {
  const { data } = useQuery(
    'GET /api/resolve',
    may('endpoints:read') ? { query: { kind: 'endpoint', name: id } } : undefined,
  );
  return (
    <Link class="of-endpoint truncate" title={data?.name} href={`/ui/endpoints/${id}/logs`}>
      <Visible text={data ? `${data.method} ${data.route}` : id} isOneLine />
    </Link>
  );
}

const STATES: Readonly<Record<FeedState, readonly [Tone, string]>> = {
  past: ['idle', 'Until the given time'],
  connecting: ['idle', 'Connecting'],
  live: ['ok', 'Live'],
  lost: ['warn', 'Cut off, connecting again'],
  refused: ['bad', 'Refused'],
};

interface ToolbarProps {
  readonly feed: LogFeed;
  readonly isFollowing: boolean;
  readonly onFollow: () => void;
}

/** What the list is doing, and what one can have it do. */
function Toolbar({ feed, isFollowing, onFollow }: ToolbarProps) {
  const isPaused = feed.isPaused.value;
  const [tone, text] = isPaused ? (['warn', 'Paused'] as const) : STATES[feed.state.value];
  const lines = feed.revision.value >= 0 ? feed.rows.length : 0;
  return (
    <header>
      <div class="row" role="status">
        <Badge tone={tone}>{text}</Badge>
        <span class="muted small number">
          {count(lines)} {lines === 1 ? 'line' : 'lines'}
          {feed.waiting.value > 0 && `, ${count(feed.waiting.value)} new`}
          {feed.leftOut.value > 0 && `, ${count(feed.leftOut.value)} left out`}
        </span>
      </div>
      <div class="actions">
        {!isFollowing && (
          <Button isSmall onClick={onFollow}>
            Go to the newest
          </Button>
        )}
        {feed.state.value !== 'past' && feed.state.value !== 'refused' && (
          <Button isSmall onClick={() => (isPaused ? feed.resume() : feed.pause())}>
            {isPaused ? 'Resume' : 'Pause'}
          </Button>
        )}
      </div>
    </header>
  );
}

/** How far back the list goes. */
function Beginning({ feed }: { readonly feed: LogFeed }) {
  const hasRows = feed.revision.value >= 0 && feed.rows.length > 0;
  if (!hasRows) return null;
  const { search, since } = feed.filter;
  return (
    <div class="log-beginning small muted">
      {!feed.isComplete.value && (
        <Button isSmall look="plain" isDisabled={feed.isLoading.value} onClick={() => feed.older()}>
          Read older lines
        </Button>
      )}
      {feed.isComplete.value &&
        (search !== undefined && since === undefined
          ? 'A search goes back one day, unless you say from when on.'
          : 'The list goes back to the first line that is kept.')}
    </div>
  );
}

function NothingYet({ filter }: { readonly filter: LogFilter }) {
  if (Object.keys(filter).length > 0)
    return (
      <Empty title="No line fits these filters">
        <p>
          {filter.search !== undefined && filter.since === undefined
            ? 'A search goes back one day, unless you say from when on.'
            : 'New ones that fit show up here.'}
        </p>
      </Empty>
    );
  return (
    <Empty title="Nothing in the log yet">
      <p>
        What the handler prints and what becomes of each request shows up here as it happens. Send it one.
      </p>
    </Empty>
  );
}
