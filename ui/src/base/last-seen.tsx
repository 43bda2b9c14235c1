/** Objects of a list that dialogs are about: what is typed there is not lost when somebody else deletes one. */
import { useRef } from 'preact/hooks';
import { Notice } from './notices.js';

interface LastSeen<T> {
  /** The object as it was last. */
  readonly one: T;
  readonly isDeleted: boolean;
}

/** Finds an object by its id, also when it is no longer in the list. */
export function useLastSeen<T extends { readonly id: string }>(
  list: readonly T[] | undefined,
): (id: string | null) => LastSeen<T> | undefined {
  const seen = useRef(new Map<string | null, T>()).current;
  // Somebody else may be signed in.
  if (!list) seen.clear();
  for (const one of list ?? []) seen.set(one.id, one);
  return (id) => {
    const one = seen.get(id);
    return one && { one, isDeleted: list?.includes(one) === false };
  };
}

/** Said where it was to be changed. @param kind such as `alert` */
export function DeletedNotice({ kind }: { readonly kind: string }) {
  return (
    <Notice
      message={`This ${kind} has been deleted: what you have typed cannot be saved. Copy what you need.`}
    />
  );
}
