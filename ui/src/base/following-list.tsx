/**
 * A list in a box of its own, of which only the rows are made that can be seen. It stays where one reads while rows are
 * added at either end, or follows its end.
 */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface FollowingListProps {
  readonly label: string;
  readonly count: number;
  /** Height of each row, pixels. */
  readonly rowHeight: number;
  /** Rows that were added at the top since the beginning, less those removed there: what is seen stays. */
  readonly shift?: number;
  /** Whether the end of the list is kept in view. */
  readonly isFollowing?: boolean;
  /** Called when somebody has scrolled. */
  readonly onScroll?: (place: { readonly isAtEnd: boolean; readonly isNearStart: boolean }) => void;
  readonly row: (index: number) => {
    readonly key: string;
    readonly class?: string;
    readonly content: ComponentChildren;
  };
}

/** Rows that are made above and below those that can be seen. */
const MARGIN = 12;
const NEAR = 4;

export function FollowingList({
  label,
  count,
  rowHeight,
  shift = 0,
  isFollowing,
  ...props
}: FollowingListProps) {
  const { onScroll, row } = props;
  const ref = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 0 });
  const last = useRef(shift);

  useLayoutEffect(() => {
    const list = ref.current;
    if (!list) return;
    const measure = () => setView({ top: list.scrollTop, height: list.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(list);
    measure();
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const list = ref.current;
    if (!list) return;
    const moved = (shift - last.current) * rowHeight;
    last.current = shift;
    if (isFollowing) list.scrollTop = list.scrollHeight;
    else if (moved !== 0) list.scrollTop += moved;
    if (list.scrollTop !== view.top) setView({ top: list.scrollTop, height: list.clientHeight });
  }, [count, shift, rowHeight, isFollowing, view.height]);

  const first = Math.max(0, Math.floor(view.top / rowHeight) - MARGIN);
  const end = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + MARGIN);
  const rows = Array.from({ length: Math.max(0, end - first) }, (_, place) => first + place);
  return (
    <section
      ref={ref}
      class="virtual-list"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        setView({ top: scrollTop, height: clientHeight });
        onScroll?.({
          isAtEnd: scrollTop + clientHeight >= scrollHeight - 2,
          isNearStart: scrollTop < NEAR * rowHeight,
        });
      }}
    >
      <ol style={{ height: `${count * rowHeight}px` }}>
        {rows.map((index) => {
          const { key, content, class: name } = row(index);
          return (
            <li
              key={key}
              class={name}
              aria-setsize={count}
              aria-posinset={index + 1}
              style={{ height: `${rowHeight}px`, transform: `translateY(${index * rowHeight}px)` }}
            >
              {content}
            </li>
          );
        })}
      </ol>
    </section>
  );
}
