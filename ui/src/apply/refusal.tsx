/** Why files cannot be applied: everything that is wrong with them at once. */
import type { ApiError } from '../api/client.js';
import { ErrorNotice } from '../base/notices.js';
import { Texts } from '../base/texts.js';

interface RefusalProps {
  readonly error: ApiError;
  readonly onRetry: () => void;
}

export function Refusal({ error, onRetry }: RefusalProps) {
  const details = (error.details ?? {}) as Readonly<Record<string, unknown>>;
  if (error.code === 'invalid_folder')
    return (
      <div role="alert">
        <Texts tone="bad" title="What is wrong with the files" texts={listOf(details['problems'], String)} />
      </div>
    );
  if (error.code === 'apply_conflict')
    return (
      <div role="alert">
        <Texts
          tone="bad"
          title="What is in the way"
          texts={listOf(details['conflicts'], (one) => String((one as { message?: unknown }).message))}
        />
      </div>
    );
  return <ErrorNotice error={error} onRetry={onRetry} />;
}

function listOf(value: unknown, textOf: (one: unknown) => string): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}
