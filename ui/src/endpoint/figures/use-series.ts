import { useLayoutEffect, useState } from 'preact/hooks';
import { type ApiError, call } from '../../api/client.js';
import { toApiError } from '../../api/query.js';
import type { Series } from '../../generated/routes.js';
import { RANGES, type Range } from './ranges.js';

const REFRESH_MS = 60_000;

interface LoadedSeries {
  readonly data: Series | undefined;
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  readonly hasMore: false;
  readonly refresh: () => void;
}

/** The figures of an endpoint until now; read again each minute while somebody looks, and kept meanwhile. */
export function useSeries(endpointId: string, range: Range, version: string | undefined): LoadedSeries {
  const key = `${endpointId} ${range} ${version}`;
  const [state, setState] = useState<{ key: string; data?: Series; error?: ApiError }>({ key });
  const [attempt, setAttempt] = useState(0);
  useLayoutEffect(() => {
    const closed = new AbortController();
    const read = async () => {
      const since = new Date(Date.now() - RANGES[range] * 1_000).toISOString();
      const query = { endpoint_id: endpointId, since, ...(version && { version: Number(version) }) };
      try {
        const { data } = await call('GET /api/series', { query }, closed.signal);
        setState({ key, data });
      } catch (thrown) {
        if (closed.signal.aborted) return;
        setState((before) => ({ ...(before.key === key ? before : { key }), error: toApiError(thrown) }));
      }
    };
    const readIfSeen = () => {
      if (!document.hidden) void read();
    };
    void read();
    const timer = setInterval(readIfSeen, REFRESH_MS);
    document.addEventListener('visibilitychange', readIfSeen);
    return () => {
      closed.abort();
      clearInterval(timer);
      document.removeEventListener('visibilitychange', readIfSeen);
    };
  }, [key, attempt]);
  const { data, error } = state.key === key ? state : { data: undefined, error: undefined };
  const refresh = () => setAttempt((count) => count + 1);
  return { data, error, isLoading: data === undefined && error === undefined, hasMore: false, refresh };
}
