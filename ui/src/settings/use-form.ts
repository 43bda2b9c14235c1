/** What has been typed into a form and is not saved yet: kept on a reload, and only what differs counts. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { storeInTab } from '../base/tab-storage.js';

export interface Form<T extends object> {
  /** What is saved, with the changes. */
  readonly values: T;
  readonly changes: Partial<T>;
  readonly isChanged: boolean;
  set<K extends keyof T>(name: K, value: T[K]): void;
  /** Forgets the changes. */
  discard(): void;
  /** The changes are saved: they are forgotten when `saved` has been read again. */
  settle(): void;
}

/**
 * @param key of the draft in this browser; undefined: what is typed may be secret, and is kept nowhere
 * @param saved what the API has
 */
export function useForm<T extends object>(key: string | undefined, saved: T): Form<T> {
  const storage = key === undefined ? undefined : `edge-draft ${key}`;
  const [typed, setTyped] = useState<Partial<T>>(() => (storage === undefined ? {} : read<T>(storage)));
  const isSettled = useRef(false);
  useEffect(() => {
    if (!isSettled.current) return;
    isSettled.current = false;
    setTyped({});
  }, [saved]);
  const changes = differing(typed, saved);
  const isChanged = Object.keys(changes).length > 0;
  useEffect(() => {
    if (storage === undefined) return;
    if (isChanged) storeInTab(storage, JSON.stringify(changes));
    else sessionStorage.removeItem(storage);
  }, [storage, JSON.stringify(changes)]);
  return {
    values: { ...saved, ...changes },
    changes,
    isChanged,
    set: (name, value) => {
      isSettled.current = false;
      // What is typed as it is saved follows what others save.
      setTyped((before) => differing({ ...before, [name]: value }, saved));
    },
    discard: () => setTyped({}),
    settle: () => {
      isSettled.current = true;
    },
  };
}

function read<T>(storage: string): Partial<T> {
  try {
    return (JSON.parse(sessionStorage.getItem(storage) ?? '{}') ?? {}) as Partial<T>;
  } catch {
    return {};
  }
}

function differing<T extends object>(typed: Partial<T>, saved: T): Partial<T> {
  const names = Object.keys(typed) as (keyof T)[];
  const changed = names.filter((name) => JSON.stringify(typed[name]) !== JSON.stringify(saved[name]));
  return Object.fromEntries(changed.map((name) => [name, typed[name]])) as Partial<T>;
}
