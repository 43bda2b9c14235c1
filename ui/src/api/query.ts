/**
 * What the API has, as signals: read once for all who show it, kept for the way back, and read again when it has
 * changed.
 */
import { type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import {
  ApiError,
  type Data,
  type Input,
  isReadingPaused,
  type RouteName,
  send,
  target,
  whenChanged,
} from './client.js';

export interface Result<T> {
  /** Undefined until there is a first answer; kept while it is read again. */
  readonly data: T | undefined;
  /** Why the last attempt failed. */
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  /** Whether a list has more pages. */
  readonly hasMore: boolean;
}

interface Entry {
  readonly path: string;
  readonly result: Signal<Result<unknown>>;
  users: number;
  isStale: boolean;
  running: AbortController | undefined;
  next: string | undefined;
}

/** Entries that nobody shows are kept until there are so many. */
const MOST_KEPT = 100;
const entries = new Map<string, Entry>();

/**
 * What a GET route answers; follows changes while the component is shown.
 * @param input undefined: not yet
 * @param isUnannounced no event tells that it has changed: it is read anew whenever it is opened
 */
export function useQuery<K extends RouteName & `GET ${string}`>(
  route: K,
  input: Input<K> | undefined,
  { isUnannounced = false } = {},
): Result<Data<K>> & { readonly refresh: () => void; readonly more: () => Promise<void> } {
  const path = input === undefined ? '' : target(route, input).path;
  const entry = entryOf(path);
  // Not after it is painted: what is shown first waits for the answer.
  useLayoutEffect(() => {
    if (path === '') return;
    entry.users++;
    if (entry.isStale || (isUnannounced && entry.users === 1)) void read(entry);
    return () => {
      entry.users--;
      forgetOld();
    };
  }, [entry]);
  const result = (entry.result as ReadonlySignal<Result<Data<K>>>).value;
  const refresh = () => {
    if (path !== '') void read(entry);
  };
  return { ...result, refresh, more: () => readMore(entry) };
}

/**
 * Has all that begins with one of these paths read again.
 * @param prefixes such as `/api/endpoints`
 */
export function invalidate(...prefixes: readonly string[]): void {
  for (const entry of entries.values()) {
    if (!prefixes.some((prefix) => entry.path.startsWith(prefix))) continue;
    entry.isStale = true;
    if (entry.users > 0) void read(entry);
  }
}

// One sees what one has done at once; others are told by the events.
whenChanged(() => invalidate('/api/'));

/** Forgets everything: somebody else looks now. */
export function forgetAll(): void {
  for (const entry of entries.values()) {
    entry.running?.abort();
    entry.isStale = true;
    entry.result.value = LOADING;
    if (entry.users > 0) void read(entry);
  }
}

const LOADING: Result<never> = { data: undefined, error: undefined, isLoading: true, hasMore: false };

function entryOf(path: string): Entry {
  let entry = entries.get(path);
  if (!entry) {
    entry = {
      ...{ path, result: signal<Result<unknown>>(LOADING), users: 0, isStale: path !== '' },
      ...{ running: undefined, next: undefined },
    };
    entries.set(path, entry);
  }
  return entry;
}

async function read(entry: Entry): Promise<void> {
  entry.running?.abort();
  // It stays stale, and is read when somebody has signed in.
  if (isReadingPaused()) {
    entry.isStale = true;
    return;
  }
  const running = new AbortController();
  entry.running = running;
  entry.isStale = false;
  entry.result.value = { ...entry.result.value, isLoading: true };
  try {
    const { data, next } = await send('GET', entry.path, undefined, { signal: running.signal });
    // Another read has begun after this one had its answer: what that says is newer.
    if (running.signal.aborted) return;
    entry.next = next;
    entry.result.value = { data, error: undefined, isLoading: false, hasMore: next !== undefined };
  } catch (thrown) {
    if (running.signal.aborted) return;
    entry.isStale = true;
    entry.result.value = { ...entry.result.value, error: toApiError(thrown), isLoading: false };
  }
}

/** Adds the next page to a list. */
async function readMore(entry: Entry): Promise<void> {
  const { next } = entry;
  if (next === undefined || entry.result.value.isLoading) return;
  const before = entry.result.value;
  entry.result.value = { ...before, isLoading: true };
  try {
    const page = await send('GET', next);
    if (entry.next !== next) return;
    entry.next = page.next;
    const data = [...(before.data as unknown[]), ...(page.data as unknown[])];
    entry.result.value = { data, error: undefined, isLoading: false, hasMore: page.next !== undefined };
  } catch (thrown) {
    entry.result.value = { ...before, error: toApiError(thrown), isLoading: false };
  }
}

function forgetOld(): void {
  for (const [path, entry] of entries) {
    if (entries.size <= MOST_KEPT) return;
    if (entry.users === 0) entries.delete(path);
  }
}

/** Anything thrown, as an error that can be shown. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(String(thrown), 'unexpected', 0, undefined, undefined, []);
}
