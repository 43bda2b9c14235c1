/**
 * Where pages are scrolled to: one that a link leads to begins at its top; with Back and Forward, and after a reload, one
 * is where one was. The browser would do the latter before a page is there again, so it is done here.
 */

/** As the state of an address that is changed on the same page: one stays where one is. */
export const IN_PLACE = { isInPlace: true };

interface State {
  readonly isInPlace?: boolean;
  /** Id of this entry of the history. */
  readonly place?: string;
}

const STORED = 'edge-scroll';
/** The oldest are forgotten. */
const MOST_KEPT = 100;
/** What is read anew is there by then. */
const RESTORED_FOR_MS = 5_000;

const positions = new Map<string, number>(stored());
let current = '';
let stop: () => void = () => undefined;

/** Call it before anything is shown. */
export function followScrolling(): void {
  history.scrollRestoration = 'manual';
  current = placeNow();
  restore(positions.get(current) ?? 0);
  // Both before the page is drawn anew. wouter announces these.
  addEventListener('pushState', () => {
    leave();
    const { isInPlace } = stateNow();
    current = placeNow();
    if (!isInPlace) scrollTo(0, 0);
  });
  addEventListener('replaceState', () => {
    if (stateNow().place === undefined) mark(current);
  });
  addEventListener('popstate', () => {
    leave();
    const isKnown = stateNow().place !== undefined;
    current = placeNow();
    // Otherwise a link within the page, such as the one that skips the menu.
    if (isKnown) restore(positions.get(current) ?? 0);
  });
  addEventListener('pagehide', () => {
    positions.set(current, scrollY);
    const kept = [...positions].slice(-MOST_KEPT);
    sessionStorage.setItem(STORED, JSON.stringify(kept));
  });
}

function leave(): void {
  stop();
  positions.delete(current);
  positions.set(current, scrollY);
}

/** Scrolls there as soon as the page is long enough, unless somebody scrolls before. */
function restore(top: number): void {
  scrollTo(0, top);
  if (top === 0) return;
  const scroll = () => {
    if (scrollY !== top) scrollTo(0, top);
  };
  const observer = new ResizeObserver(scroll);
  const timer = setTimeout(() => stop(), RESTORED_FOR_MS);
  const events = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const;
  stop = () => {
    observer.disconnect();
    clearTimeout(timer);
    for (const event of events) removeEventListener(event, stop);
  };
  for (const event of events) addEventListener(event, stop, { passive: true });
  observer.observe(document.body);
}

/** The name of the entry of the history, which gets one if it has none. */
function placeNow(): string {
  return stateNow().place ?? mark(crypto.randomUUID());
}

function mark(place: string): string {
  history.replaceState({ ...stateNow(), place }, '');
  return place;
}

function stateNow(): State {
  return (history.state ?? {}) as State;
}

function stored(): [string, number][] {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? '[]') as [string, number][];
  } catch {
    return [];
  }
}
