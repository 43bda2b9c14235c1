/** Waits until a handler says on its control stream that it listens, and what it takes. */
import type { Duplex } from 'node:stream';
import type { Takes } from '../../contracts/front.js';

/** Why a start ends that nobody waits for any more. */
export const ABANDONED = 'it is not wanted any more';

/** What a handler takes, or why it is not ready. */
export type StartOutcome = { readonly takes: Takes } | { readonly failure: string };

/** The lines that a handler may write, and what they say; the other end is `rust/sdk/core/src/wire/takes.rs`. */
const READY_LINES: ReadonlyMap<string, Takes> = new Map([
  ['ready\n', 'whole'],
  ['ready streams\n', 'streams'],
  ['ready websockets\n', 'websockets'],
]);
const LONGEST = Math.max(...[...READY_LINES.keys()].map((line) => line.length));

/**
 * Resolves when the handler is ready, has ended, or has taken too long, or when nobody waits for it any more.
 * @param ended resolves with the reason when the process has ended
 */
export async function becameReady(
  control: Duplex,
  ended: Promise<string>,
  timeoutMs: number,
  abandoned: AbortSignal | undefined,
): Promise<StartOutcome> {
  if (abandoned?.aborted) return { failure: ABANDONED };
  let timer: NodeJS.Timeout | undefined;
  let giveUp = (): void => undefined;
  const given = new Promise<StartOutcome>((resolve) => {
    giveUp = () => resolve({ failure: ABANDONED });
  });
  abandoned?.addEventListener('abort', giveUp);
  const timeout = new Promise<StartOutcome>((resolve) => {
    timer = setTimeout(() => resolve({ failure: `it was not ready within ${timeoutMs} ms` }), timeoutMs);
  });
  const end = ended.then((failure) => ({ failure }));
  const first = await Promise.race([readyLine(control), end, timeout, given]);
  clearTimeout(timer);
  abandoned?.removeEventListener('abort', giveUp);
  return first;
}

/** Reads the first line. Nothing is read after it, or after anything else than such a line. */
function readyLine(control: Duplex): Promise<StartOutcome> {
  return new Promise((resolve) => {
    let line = '';
    const read = () => {
      while (line.length < LONGEST && !line.endsWith('\n')) {
        const next: Buffer | null = control.read(1);
        if (next === null) return;
        line += next.toString('latin1');
      }
      control.off('readable', read);
      const takes = READY_LINES.get(line);
      if (takes !== undefined) resolve({ takes });
    };
    control.on('readable', read);
  });
}
