/** Two texts, and what differs. */
import { rust } from '@codemirror/lang-rust';
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'preact/hooks';
import { useMedia } from '../../base/use-media.js';
import { theme } from '../code/theme.js';

interface Side {
  readonly label: string;
  readonly text: string;
}

interface DiffProps {
  readonly before: Side;
  readonly after: Side;
  readonly isRust: boolean;
}

/** Texts that differ so much that this takes longer are compared roughly. */
const TIMEOUT_MS = 500;
const OPTIONS = {
  ...{ highlightChanges: true, gutter: true, collapseUnchanged: { margin: 3, minSize: 6 } },
  diffConfig: { timeout: TIMEOUT_MS },
};
/** Here there is no room for two texts side by side: what was taken out is shown above what came instead. */
const NARROW = '(max-width: 700px)';

export function DiffView({ before, after, isRust }: DiffProps) {
  const parent = useRef<HTMLDivElement>(null);
  const isNarrow = useMedia(NARROW);
  useEffect(() => {
    if (!parent.current) return;
    const view = isNarrow ? oneBelowTheOther(parent.current) : sideBySide(parent.current);
    return () => view.destroy();
  }, [before.label, before.text, after.label, after.text, isRust, isNarrow]);

  const sideBySide = (element: HTMLElement) =>
    new MergeView({
      a: { doc: before.text, extensions: extensions(before.label, isRust) },
      b: { doc: after.text, extensions: extensions(after.label, isRust) },
      parent: element,
      ...OPTIONS,
    });
  const oneBelowTheOther = (element: HTMLElement) =>
    new EditorView({
      doc: after.text,
      extensions: [
        ...extensions(after.label, isRust),
        unifiedMergeView({ original: before.text, mergeControls: false, ...OPTIONS }),
      ],
      parent: element,
    });
  return (
    <div class="diff">
      <div class={`diff-labels small muted ${isNarrow ? 'one' : ''}`} aria-hidden="true">
        <span>{isNarrow ? `− Only in: ${before.label}` : before.label}</span>
        <span>{isNarrow ? `+ Only in: ${after.label}` : after.label}</span>
      </div>
      {before.text === after.text && <p class="pad-in muted">They are the same.</p>}
      <div ref={parent} />
    </div>
  );
}

function extensions(label: string, isRust: boolean): Extension[] {
  return [
    ...[theme, lineNumbers(), EditorState.readOnly.of(true), EditorView.lineWrapping],
    ...(isRust ? [rust()] : []),
    EditorView.contentAttributes.of({ 'aria-label': label }),
  ];
}
