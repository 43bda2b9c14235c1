/** What is chosen on a page, in its address: links lead to it, and the back button undoes it. */
import { useSearchParams } from 'wouter-preact';
import { IN_PLACE } from './scroll.js';

/** The query of the address, and a function that changes it; undefined or an empty text removes a name. */
export function useAddress(): readonly [
  URLSearchParams,
  (changes: Readonly<Record<string, string | undefined>>, isTyped?: boolean) => void,
] {
  const [params, setParams] = useSearchParams();
  const change = (changes: Readonly<Record<string, string | undefined>>, isTyped = false) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes))
          if (value === undefined || value === '') next.delete(name);
          else next.set(name, value);
        return next;
      },
      // While one types, each letter is no step back.
      { replace: isTyped, state: IN_PLACE },
    );
  return [params, change];
}

/** One value of it, which somebody types; the empty text is not there. */
export function useAddressValue(name: string): readonly [string, (value: string) => void] {
  const [params, change] = useAddress();
  return [params.get(name) ?? '', (value) => change({ [name]: value }, true)];
}
