/** The files that are open, above the editor. */
import { useEffect, useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { Button } from '../../base/controls.js';
import { IN_PLACE } from '../../base/scroll.js';
import { Visible } from '../../base/visible.js';
import type { Draft } from './draft.js';
import { Changed } from './file-tree.js';
import { contentAt, nameOf } from './files.js';
import type { OpenFile } from './open-file.js';

export function FileTabs({ draft, file }: { readonly draft: Draft; readonly file: OpenFile }) {
  const opened = [...new Set([...draft.opened.value, file.path])];
  const tabs = opened.filter((path) => contentAt(draft.written.value, path) !== undefined);
  const close = (path: string) => {
    const at = tabs.indexOf(path);
    const left = tabs.filter((other) => other !== path);
    draft.opened.value = left;
    if (path === file.path) file.open(left[Math.min(at, left.length - 1)] ?? draft.written.peek().entry);
  };
  const nav = useRef<HTMLElement>(null);
  // It may be beside what is seen.
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [file.path]);
  return (
    <nav ref={nav} class="file-tabs" aria-label="Open files">
      {tabs.map((path) => (
        <span key={path} class={path === file.path ? 'current' : undefined}>
          <Link
            href={file.hrefOf(path)}
            state={IN_PLACE}
            aria-current={path === file.path ? 'true' : undefined}
            title={path}
          >
            <Visible text={shortest(path, tabs)} isOneLine /> <Changed draft={draft} path={path} />
          </Link>
          {tabs.length > 1 && (
            <Button isSmall look="plain" label={`Close ${path}`} onClick={() => close(path)}>
              ✕
            </Button>
          )}
        </span>
      ))}
    </nav>
  );
}

/** Its name, or its path where another tab has the same name. */
function shortest(path: string, tabs: readonly string[]): string {
  const name = nameOf(path);
  return tabs.some((other) => other !== path && nameOf(other) === name) ? path : name;
}
