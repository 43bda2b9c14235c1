/** What a page shows, kept in its address: a link to it shows the same, and the back button goes back. */
import { useSearchParams } from 'wouter-preact';

/** A value in the query of the address; the empty text is not there. */
export function useAddressValue(name: string): [string, (value: string) => void] {
  const [parameters, setParameters] = useSearchParams();
  const set = (value: string) =>
    setParameters(
      (before) => {
        const next = new URLSearchParams(before);
        if (value === '') next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return [parameters.get(name) ?? '', set];
}
