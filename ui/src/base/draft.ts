/** What has been typed and not sent yet: kept in this tab, so that a reload loses nothing. */
import { useEffect, useState } from 'preact/hooks';
import { storeInTab } from './tab-storage.js';
import { useDebounced } from './use-debounced.js';

const KEPT_AFTER_MS = 300;
/** More is not kept: the storage of a tab has 5 MB for all. */
const MOST_CHARACTERS = 1_000_000;

/**
 * State that outlives a reload.
 * @param kept what of it is stored, as text: nothing secret
 * @returns value, change, forget
 */
export function useDraft<T>(
  name: string,
  initial: T,
  kept: (value: T) => T = (value) => value,
): readonly [T, (value: T | ((before: T) => T)) => void, () => void] {
  const key = `edge-draft-${name}`;
  const [value, setValue] = useState<T>(() => stored(key) ?? initial);
  const [isForgotten, setForgotten] = useState(true);
  const debounced = useDebounced(value, KEPT_AFTER_MS);
  useEffect(() => {
    if (isForgotten) return;
    const text = JSON.stringify(kept(debounced));
    if (text.length <= MOST_CHARACTERS) storeInTab(key, text);
  }, [debounced, isForgotten]);
  const change = (next: T | ((before: T) => T)) => {
    setForgotten(false);
    setValue(next);
  };
  const forget = () => {
    sessionStorage.removeItem(key);
    setForgotten(true);
    setValue(initial);
  };
  return [value, change, forget];
}

function stored<T>(key: string): T | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}
