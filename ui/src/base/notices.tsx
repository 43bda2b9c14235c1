/** What is shown where there is nothing, nothing yet, or an error. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import type { ApiError } from '../api/client.js';
import type { Result } from '../api/query.js';

interface Answers {
  readonly onRetry?: () => void;
  readonly onClose?: () => void;
}

/** What the API says went wrong. */
export function ErrorNotice({ error, ...answers }: { readonly error: ApiError } & Answers) {
  return (
    <Notice message={error.message} {...answers}>
      <RequestOf error={error} />
    </Notice>
  );
}

interface NoticeProps extends Answers {
  readonly message: string;
  readonly children?: ComponentChildren;
}

/** What went wrong. */
export function Notice({ message, children, onRetry, onClose }: NoticeProps) {
  return (
    <div class="notice bad" role="alert">
      <div>
        <div>{message}</div>
        {children}
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

/** The id by which the logs of the gateway have it. */
function RequestOf({ error: { code, requestId } }: { readonly error: ApiError }) {
  if (requestId === undefined) return null;
  return (
    <div class="small muted">
      {code}, request <code>{requestId}</code>
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

/** What a page is about, and where there are others. */
export interface Subject {
  /** Such as `endpoint`. */
  readonly kind: string;
  /** The address of the list, and what it is called. */
  readonly list: string;
  readonly listName: string;
}

interface LoadedProps<T> {
  readonly result: Result<T> & { readonly refresh: () => void };
  readonly lines?: number;
  /** The object that a page is about, whose address may be wrong or old; undefined on other pages. */
  readonly subject?: Subject;
  readonly children: (data: T) => ComponentChildren;
}

/** What has been read; a skeleton before that; the error beside what was read before. */
export function Loaded<T>({ result: { data, error, refresh }, lines, subject, children }: LoadedProps<T>) {
  if (data === undefined && error === undefined) return <Skeleton {...(lines !== undefined && { lines })} />;
  return (
    <>
      {error && <ReadError error={error} subject={subject} onRetry={refresh} />}
      {data !== undefined && children(data)}
    </>
  );
}

interface ReadErrorProps {
  readonly error: ApiError;
  readonly subject: Subject | undefined;
  readonly onRetry: () => void;
}

/** Why something cannot be read. What does not exist is not there when one tries again, either. */
export function ReadError({ error, subject, onRetry }: ReadErrorProps) {
  const isNoId = error.code === 'invalid_input' && error.message.startsWith('path.id');
  if (error.status !== 404 && !isNoId) return <ErrorNotice error={error} onRetry={onRetry} />;
  if (!subject) return <ErrorNotice error={error} />;
  return (
    <div role="alert">
      <Empty title={`There is no such ${subject.kind}`}>
        <p>It has been deleted, or the address is wrong.</p>
        <RequestOf error={error} />
        <Link class="button" href={subject.list}>
          {subject.listName}
        </Link>
      </Empty>
    </div>
  );
}
