/** The first of many, and all of them with a click. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from './controls.js';
import { count } from './text.js';

const SHOWN = 200;

interface FirstOfProps<T> {
  readonly all: readonly T[];
  /** How many are shown at first. */
  readonly first?: number;
  readonly children: (shown: readonly T[]) => ComponentChildren;
}

export function FirstOf<T>({ all, first = SHOWN, children }: FirstOfProps<T>) {
  const [isAll, setAll] = useState(false);
  const shown = isAll ? all : all.slice(0, first);
  return (
    <>
      {children(shown)}
      {shown.length < all.length && (
        <div class="actions center">
          <Button onClick={() => setAll(true)}>Show all {count(all.length)}</Button>
        </div>
      )}
    </>
  );
}
