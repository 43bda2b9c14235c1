import type { ComponentChildren } from 'preact';

/** Text whose columns mean something, such as code or what a compiler prints: long lines scroll, and do not wrap. */
export function Columns({ children }: { readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
    <pre class="code-block columns" tabIndex={0}>
      {children}
    </pre>
  );
}
