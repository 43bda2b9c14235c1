/** A list of any length of which only what is in the window is made. It scrolls with the page. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface VirtualListProps<T> {
  readonly label: string;
  readonly items: readonly T[];
  /** Height of each row, pixels. */
  readonly rowHeight: number;
  readonly keyOf: (item: T) => string;
  readonly children: (item: T) => ComponentChildren;
  /** Called when the end is near, again after the items have changed. */
  readonly onEnd?: () => void;
}

/** Rows beyond the edges of the window, so that none is missing while one scrolls. */
const BEYOND = 12;
const NEAR_END = 100;

export function VirtualList<T>({ label, items, rowHeight, keyOf, children, onEnd }: VirtualListProps<T>) {
  const ref = useRef<HTMLUListElement>(null);
  const [[first, last], setRange] = useState<readonly [number, number]>([0, 40]);
  const measure = () => {
    const top = ref.current?.getBoundingClientRect().top ?? 0;
    const from = Math.max(0, Math.floor(-top / rowHeight) - BEYOND);
    const to = Math.ceil((innerHeight - top) / rowHeight) + BEYOND;
    setRange((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useLayoutEffect(measure, [items.length, rowHeight]);
  useEffect(() => {
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => {
      removeEventListener('scroll', measure);
      removeEventListener('resize', measure);
    };
  }, [rowHeight]);
  useEffect(() => {
    if (last + NEAR_END >= items.length) onEnd?.();
  }, [last, items]);
  return (
    <ul ref={ref} class="virtual" aria-label={label} style={{ height: `${items.length * rowHeight}px` }}>
      {items.slice(first, last).map((item, index) => (
        <li
          key={keyOf(item)}
          aria-setsize={items.length}
          aria-posinset={first + index + 1}
          style={{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}
        >
          {children(item)}
        </li>
      ))}
    </ul>
  );
}
