/** What an import would do, asked again when something of it changes. */
import { useEffect, useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import type { ImportPlan } from '../generated/routes.js';
import { planImport, type Wanted } from './request.js';

export interface Planned {
  readonly data: ImportPlan | undefined;
  readonly warnings: readonly string[];
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  readonly refresh: () => void;
}

/** @param version changes when `wanted` is another one, and settled */
export function usePlan(wanted: Wanted | undefined, version: string): Planned {
  const [attempt, setAttempt] = useState(0);
  const [plan, setPlan] = useState<Omit<Planned, 'refresh'>>(NONE);
  useEffect(() => {
    if (!wanted) {
      setPlan(NONE);
      return;
    }
    const abort = new AbortController();
    setPlan((before) => ({ ...before, error: undefined, isLoading: true }));
    planImport(wanted, abort.signal).then(
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
