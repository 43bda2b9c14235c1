/** Forms that show what the API says of a value at its field. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { Button } from './controls.js';
import { ErrorNotice } from './notices.js';

/** What the API says of a field, such as `body.name`; undefined: nothing. */
export type ProblemAt = (field: string) => string | undefined;

interface FormProps {
  readonly children: (problemAt: ProblemAt) => ComponentChildren;
  /** What the button says that does it. */
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly isDisabled?: boolean;
  readonly onSubmit: () => Promise<unknown>;
  readonly onCancel?: () => void;
}

export function Form({ children, action, isDangerous, isDisabled, onSubmit, onCancel }: FormProps) {
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    await onSubmit().catch((thrown: unknown) => setError(toApiError(thrown)));
    setBusy(false);
  };
  useLayoutEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error]);
  let isAtField = false;
  const problemAt: ProblemAt = (field) => {
    const found = error && saidOf(error.message, field);
    isAtField ||= found !== undefined;
    return found;
  };
  const fields = children(problemAt);
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
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button isSubmit look={isDangerous ? 'danger' : 'primary'} isDisabled={isBusy || isDisabled === true}>
          {action}
        </Button>
      </footer>
    </form>
  );
}

/** Messages begin with the place of what is wrong: `body.name: is required`, `body.domains.0: …`. */
function saidOf(message: string, field: string): string | undefined {
  const [, place = '', text] = /^([\w.\-[\]]+): (.*)$/s.exec(message) ?? [];
  return place === field || place.startsWith(`${field}.`) || place.startsWith(`${field}[`) ? text : undefined;
}
