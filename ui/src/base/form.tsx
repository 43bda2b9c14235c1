/** Forms that show what the API says of a value at its field. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { Button } from './controls.js';
import { ErrorNotice } from './notices.js';
import { problemAt as problemOf } from './problems.js';

/** What the API says of a field, such as `body.name`; undefined: nothing. */
export type ProblemAt = (field: string) => string | undefined;

export interface FormProps {
  readonly children: ComponentChildren | ((problemAt: ProblemAt) => ComponentChildren);
  /** What the button says that does it. */
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly isDisabled?: boolean;
  /** Said beside the button while it is disabled, where the form does not show why. */
  readonly whyNot?: string;
  readonly onSubmit: () => Promise<unknown>;
  readonly onCancel?: () => void;
}

export function Form({ children, action, isDangerous, isDisabled, whyNot, onSubmit, onCancel }: FormProps) {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    await onSubmit().catch((thrown: unknown) => setError(toApiError(thrown)));
    setBusy(false);
  };
  const [isAtField, setAtField] = useState(false);
  // Parts of the form may show it, which are rendered later than this.
  useLayoutEffect(() => {
    const field = error && form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
    field?.focus();
    setAtField(field != null);
  }, [error]);
  const problemAt: ProblemAt = (field) => problemOf(error, field);
  const fields = typeof children === 'function' ? children(problemAt) : children;
  return (
    <form
      ref={form}
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void submit();
      }}
    >
      {fields}
      {error && !isAtField && <ErrorNotice error={error} />}
      {error && isAtField && error.requestId !== undefined && (
        <p class="small muted" role="alert">
          Nothing was saved: see the field that is marked. Request <code>{error.requestId}</code>
        </p>
      )}
      <footer class="actions end">
        {isDisabled && whyNot !== undefined && <span class="small muted">{whyNot}</span>}
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button isSubmit look={isDangerous ? 'danger' : 'primary'} isDisabled={isBusy || isDisabled === true}>
          {action}
        </Button>
      </footer>
    </form>
  );
}
