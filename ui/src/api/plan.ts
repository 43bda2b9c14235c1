/** What something would do, asked again when something of it changes. */
import { useEffect, useState } from 'preact/hooks';
import type { Answer, ApiError } from './client.js';
import { toApiError } from './query.js';

export interface PlannedApply<T> {
  readonly data: T | undefined;
  readonly warnings: readonly string[];
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  readonly refresh: () => void;
}

/**
 * @param ask undefined: there is nothing to plan yet
 * @param version changes when `ask` is for another plan; debounced
 */
export function usePlan<T>(
  ask: ((signal: AbortSignal) => Promise<Answer<T>>) | undefined,
  version: string,
): PlannedApply<T> {
  const [attempt, setAttempt] = useState(0);
  const [plan, setPlan] = useState<Omit<PlannedApply<T>, 'refresh'>>(NONE);
  useEffect(() => {
    if (!ask) {
      setPlan(NONE);
      return;
    }
    const abort = new AbortController();
    setPlan((before) => ({ ...before, error: undefined, isLoading: true }));
    ask(abort.signal).then(
      ({ data, warnings }) => {
        if (!abort.signal.aborted) setPlan({ data, warnings, error: undefined, isLoading: false });
      },
      (thrown: unknown) => {
        if (!abort.signal.aborted) setPlan({ ...NONE, error: toApiError(thrown) });
      },
    );
    return () => abort.abort();
  }, [version, attempt]);
  return { ...plan, refresh: () => setAttempt((count) => count + 1) };
}

const NONE = { data: undefined, warnings: [], error: undefined, isLoading: false };
