/** Follows work by its events, until it has ended. */
import { useEffect, useState } from 'preact/hooks';
import { isExpired } from './session.js';

interface FollowOptions<P> {
  /** Address of a stream of the events `progress` and `done`. */
  readonly path: string;
  /** Whether the work has not ended. */
  readonly isUnfinished: boolean;
  readonly onProgress: (progress: P) => void;
  /** It has ended, or the events have: it is to be read again. */
  readonly refresh: () => void;
}

const AGAIN_AFTER_MS = 2_000;

/** Follows the events while the work is unfinished and the component is shown. */
export function useProgressEvents<P>({ path, isUnfinished, onProgress, refresh }: FollowOptions<P>): void {
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!isUnfinished || isExpired.value) return;
    const source = new EventSource(path);
    source.addEventListener('progress', ({ data }: MessageEvent<string>) =>
      onProgress(JSON.parse(data) as P),
    );
    source.addEventListener('done', () => {
      source.close();
      refresh();
    });
    let timer: number | undefined;
    source.addEventListener('error', () => {
      // Refused, or at its end: the browser does not try again by itself.
      if (source.readyState !== EventSource.CLOSED) return;
      refresh();
      timer = window.setTimeout(() => setAttempt((count) => count + 1), AGAIN_AFTER_MS);
    });
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [path, isUnfinished, isExpired.value, attempt]);
}
