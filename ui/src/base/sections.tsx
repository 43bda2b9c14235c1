/** Parts of what can be set: a list of them beside the one that is shown, or in a row above it on small screens. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';

interface SectionsProps {
  readonly label: string;
  readonly sections: readonly { readonly to: string; readonly label: string; readonly isCurrent: boolean }[];
  /** The part that is shown. */
  readonly children: ComponentChildren;
}

export function Sections({ label, sections, children }: SectionsProps) {
  const nav = useRef<HTMLElement>(null);
  const current = sections.find(({ isCurrent }) => isCurrent)?.to;
  useEffect(() => {
    // On small screens it may be beside what is seen.
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [current]);
  return (
    <div class="sections">
      <nav ref={nav} aria-label={label}>
        {sections.map(({ to, label, isCurrent }) => (
          <Link key={to} href={to} aria-current={isCurrent ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <div class="stack">{children}</div>
    </div>
  );
}
