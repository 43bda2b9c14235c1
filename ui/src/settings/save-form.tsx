/** A part of the settings with its own fields, button, and errors. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { Button } from '../base/controls.js';
import { ErrorNotice } from '../base/notices.js';
import { isAtOneOf, problemAt } from '../base/problems.js';
import { done } from '../base/toasts.js';
import type { Form } from './use-form.js';

interface SaveFormProps<T extends object> {
  readonly form: Form<T>;
  /** The places of its fields in what the API says, such as `body.name`. */
  readonly places: readonly string[];
  readonly mayEdit: boolean;
  /** Sends the changes; resolves with the warnings of the API. */
  readonly onSave: () => Promise<{ readonly warnings: readonly string[] }>;
  readonly children: (problem: (place: string) => string | undefined) => ComponentChildren;
}

export function SaveForm<T extends object>({ form, places, mayEdit, onSave, children }: SaveFormProps<T>) {
  const [error, setError] = useState<ApiError>();
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  const save = async () => {
    setError(undefined);
    setWarnings([]);
    try {
      setWarnings((await onSave()).warnings);
      form.settle();
      done('Saved');
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    await save();
    setBusy(false);
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (form.isChanged && !isBusy) void submit();
      }}
    >
      <fieldset disabled={!mayEdit}>{children((place) => problemAt(error, place))}</fieldset>
      {error && !isAtOneOf(error, places) && <ErrorNotice error={error} />}
      {warnings.map((warning) => (
        <div key={warning} class="notice warn" role="status">
          <span>{warning}</span>
        </div>
      ))}
      {mayEdit && (
        <div class="actions">
          <Button isSubmit look="primary" isDisabled={!form.isChanged || isBusy}>
            Save
          </Button>
          {form.isChanged && (
            <Button
              onClick={() => {
                setError(undefined);
                form.discard();
              }}
            >
              Discard changes
            </Button>
          )}
        </div>
      )}
    </form>
  );
}
