import { useEffect, useRef } from 'preact/hooks';

/** Calls back every so often while the page can be seen. */
export function useInterval(ms: number, callback: () => void): void {
  const latest = useRef(callback);
  latest.current = callback;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, ms);
    return () => clearInterval(timer);
  }, [ms]);
}
