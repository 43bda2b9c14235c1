/** Messages about what has just been done, which go away by themselves; failures stay until they are closed. */
import { signal } from '@preact/signals';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { ErrorNotice } from './notices.js';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly error?: ApiError;
  /** Done, but not as one would want it. */
  readonly isWarning?: boolean;
  readonly action?: ToastAction;
}

/** What one can still do about it, such as to undo it. */
interface ToastAction {
  readonly label: string;
  readonly run: () => Promise<unknown>;
}

const SHOWN_MS = 5_000;
/** Somebody has to read it first, and then to reach it. */
const SHOWN_WITH_ACTION_MS = 20_000;
const MOST_SHOWN = 4;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Says that something has been done. */
export function done(text: string, action?: ToastAction): void {
  const id = add({ text, ...(action && { action }) });
  setTimeout(() => close(id), action ? SHOWN_WITH_ACTION_MS : SHOWN_MS);
}

/** Says that something has been done, and what is wrong with it. */
export function warned(text: string): void {
  const id = add({ text, isWarning: true });
  setTimeout(() => close(id), SHOWN_WITH_ACTION_MS);
}

/** Shows why something could not be done. */
export function failed(thrown: unknown): void {
  const error = toApiError(thrown);
  // The form to sign in says it.
  if (error.status !== 401) add({ text: error.message, error });
}

function add(toast: Omit<Toast, 'id'>): number {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, ...toast }].slice(-MOST_SHOWN);
  return id;
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, error, action, isWarning }) =>
        error ? (
          <ErrorNotice key={id} error={error} onClose={() => close(id)} />
        ) : (
          <div key={id} class={`notice ${isWarning ? 'warn' : 'ok'}`}>
            <span>{text}</span>
            {action && (
              <button
                type="button"
                class="button small"
                onClick={() => {
                  close(id);
                  action.run().catch(failed);
                }}
              >
                {action.label}
              </button>
            )}
          </div>
        ),
      )}
    </div>
  );
}
