/** Two texts side by side, and what differs. */
import { rust } from '@codemirror/lang-rust';
import { MergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'preact/hooks';
import { theme } from '../code/theme.js';

interface Side {
  readonly label: string;
  readonly text: string;
}

interface DiffProps {
  readonly before: Side;
  readonly after: Side;
}

/** Texts that differ so much that this takes longer are compared roughly. */
const TIMEOUT_MS = 500;

export function DiffView({ before, after }: DiffProps) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!parent.current) return;
    const view = new MergeView({
      a: { doc: before.text, extensions: extensions(before.label) },
      b: { doc: after.text, extensions: extensions(after.label) },
      parent: parent.current,
      highlightChanges: true,
      gutter: true,
      collapseUnchanged: { margin: 3, minSize: 6 },
      diffConfig: { timeout: TIMEOUT_MS },
    });
    return () => view.destroy();
  }, [before.label, before.text, after.label, after.text]);
  return (
    <div class="diff">
      <div class="diff-labels small muted" aria-hidden="true">
        <span>{before.label}</span>
        <span>{after.label}</span>
      </div>
      {before.text === after.text && <p class="pad-in muted">They are the same.</p>}
      <div ref={parent} />
    </div>
  );
}

function extensions(label: string): Extension[] {
  return [
    ...[theme, rust(), lineNumbers(), EditorState.readOnly.of(true), EditorView.lineWrapping],
    EditorView.contentAttributes.of({ 'aria-label': label }),
  ];
}
