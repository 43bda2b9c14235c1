import type { ComponentChildren } from 'preact';

interface ScrollAreaProps {
  readonly label: string;
  readonly class: string;
  readonly children: ComponentChildren;
}

/** A part of a page that scrolls by itself, also with keys; the style of its class says when. */
export function ScrollArea({ label, class: name, children }: ScrollAreaProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
    <section class={name} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
