/** What is there until the API has said who this is. */
import { useLayoutEffect, useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { loadSession } from '../api/session.js';
import { ErrorNotice, Skeleton } from '../base/notices.js';

/** Longer than the first answer usually takes. */
const SHOWN_AFTER_MS = 400;

export function Connecting() {
  const [error, setError] = useState<ApiError>();
  const [isSlow, setSlow] = useState(false);
  const load = () => {
    setError(undefined);
    loadSession().catch((thrown: unknown) => setError(toApiError(thrown)));
  };
  // All waits for the answer: it is asked for before anything is painted.
  useLayoutEffect(() => {
    load();
    const timer = setTimeout(() => setSlow(true), SHOWN_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!isSlow && !error) return null;
  return (
    <main class="alone">
      <div class="card">{error ? <ErrorNotice error={error} onRetry={load} /> : <Skeleton />}</div>
    </main>
  );
}
