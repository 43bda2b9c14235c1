/** The frame of a page: its title, what leads to it, and what one can do. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { Visible } from './visible.js';

interface PageProps {
  readonly title: string;
  /** Shown instead of the title as text. */
  readonly heading?: ComponentChildren;
  readonly crumbs?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ title, heading, crumbs, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Edge Gateway`;
  }, [title]);
  return (
    <main id="main" class="page" tabIndex={-1}>
      <header>
        <div>
          {crumbs !== undefined && <div class="crumbs">{crumbs}</div>}
          <h1>{heading ?? <Visible text={title} isOneLine />}</h1>
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </main>
  );
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly { readonly to: string; readonly label: string; readonly isCurrent: boolean }[];
}

/** Parts of a page that have addresses of their own. */
export function Tabs({ label, tabs }: TabsProps) {
  const nav = useRef<HTMLElement>(null);
  const current = tabs.find(({ isCurrent }) => isCurrent)?.to;
  // On a phone it may be beside what is seen.
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <nav ref={nav} class="tabs" aria-label={label}>
      {tabs.map(({ to, label, isCurrent }) => (
        <Link key={to} href={to} aria-current={isCurrent ? 'page' : undefined}>
          {label}
        </Link>
      ))}
    </nav>
  );
}
