/** What long lists have in common. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Result } from '../api/query.js';
import { Button } from './controls.js';
import { useDebounced } from './use-debounced.js';

/** Shows the next rows of a list that has more. */
export function MoreButton({
  result,
}: {
  readonly result: Result<unknown> & { readonly more: () => Promise<void> };
}) {
  if (!result.hasMore) return null;
  return (
    <div class="actions center">
      <Button onClick={result.more}>Show more</Button>
    </div>
  );
}

const SETTLED_AFTER_MS = 200;

interface SearchFieldProps {
  readonly label: string;
  readonly value: string;
  /** Called when one has stopped typing. */
  readonly onInput: (text: string) => void;
  readonly placeholder?: string;
}

export function SearchField({ label, value, onInput, placeholder = label }: SearchFieldProps) {
  const [text, setText] = useState(value);
  const debounced = useDebounced(text, SETTLED_AFTER_MS);
  const reported = useRef(value);
  useEffect(() => {
    if (debounced === reported.current) return;
    reported.current = debounced;
    onInput(debounced.trim());
  }, [debounced]);
  // The address has changed by itself: the back button.
  useEffect(() => {
    if (value === reported.current.trim()) return;
    reported.current = value;
    setText(value);
  }, [value]);
  return (
    <input
      class="input search"
      type="search"
      aria-label={label}
      placeholder={placeholder}
      spellcheck={false}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}
