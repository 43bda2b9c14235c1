/** What is shown where there is nothing, nothing yet, or an error. */
import type { ComponentChildren } from 'preact';
import type { ApiError } from '../api/client.js';
import type { Result } from '../api/query.js';

interface ErrorNoticeProps {
  readonly error: ApiError;
  readonly onRetry?: () => void;
  readonly onClose?: () => void;
}

/** What went wrong, with the id by which the logs of the gateway have it. */
export function ErrorNotice({ error, onRetry, onClose }: ErrorNoticeProps) {
  return (
    <div class="notice bad" role="alert">
      <div>
        <div>{error.message}</div>
        {error.requestId !== undefined && (
          <div class="small muted">
            {error.code}, request <code>{error.requestId}</code>
          </div>
        )}
      </div>
      {onRetry && (
        <button type="button" class="button small" onClick={onRetry}>
          Try again
        </button>
      )}
      {onClose && (
        <button type="button" class="button small plain" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      )}
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** Says what to do where there is nothing. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Lines in the place of a text or a table that is being read. */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <div class="stack" aria-hidden="true">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="skeleton" style={{ width: `${90 - ((index * 23) % 45)}%` }} />
      ))}
    </div>
  );
}

interface LoadedProps<T> {
  readonly result: Result<T> & { readonly refresh: () => void };
  readonly lines?: number;
  readonly children: (data: T) => ComponentChildren;
}

/** What has been read; a skeleton before that; the error beside what was read before. */
export function Loaded<T>({ result: { data, error, refresh }, lines, children }: LoadedProps<T>) {
  if (data === undefined && error === undefined) return <Skeleton {...(lines !== undefined && { lines })} />;
  return (
    <>
      {error && <ErrorNotice error={error} onRetry={refresh} />}
      {data !== undefined && children(data)}
    </>
  );
}
