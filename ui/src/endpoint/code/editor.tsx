/** The editor of the code of a handler. */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completeAnyWord,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { rust } from '@codemirror/lang-rust';
import { bracketMatching, indentOnInput, indentUnit } from '@codemirror/language';
import { lintGutter, lintKeymap, type Diagnostic as Mark, setDiagnostics } from '@codemirror/lint';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Diagnostic } from '../../api/client.js';
import type { CheckedDraft } from './draft.js';
import { apply, canApply, compiled, compiledField, spanOf } from './places.js';
import { theme } from './theme.js';

interface EditorProps {
  readonly label: string;
  readonly code: string;
  /** Another number: the text was replaced from elsewhere. */
  readonly replaced: number;
  readonly isReadOnly: boolean;
  readonly checked: CheckedDraft | undefined;
  readonly onInput: (code: string) => void;
  /** Ctrl-S. */
  readonly onSave: () => void;
  /** Called with the editor when it is there, and after each change of its text or its messages. */
  readonly onUpdate: (view: EditorView) => void;
}

export function Editor(props: EditorProps) {
  const { label, replaced, isReadOnly, checked } = props;
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (!parent.current) return;
    const editor = new EditorView({
      parent: parent.current,
      doc: latest.current.code,
      extensions: [...extensions(label, isReadOnly, latest)],
    });
    view.current = editor;
    latest.current.onUpdate(editor);
    return () => editor.destroy();
  }, [label, isReadOnly]);

  // Not with each change of `code`: what is typed is in the editor before it is here. Replacing can be undone.
  useLayoutEffect(() => {
    const editor = view.current;
    const { code } = latest.current;
    if (!editor || editor.state.doc.toString() === code) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: code } });
  }, [replaced]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || !checked) return;
    editor.dispatch({ effects: compiled(editor.state, checked.code) });
    editor.dispatch(setDiagnostics(editor.state, marksOf(editor.state, checked.diagnostics)));
    latest.current.onUpdate(editor);
  }, [checked, isReadOnly]);

  return <div class="editor" ref={parent} />;
}

function* extensions(
  label: string,
  isReadOnly: boolean,
  latest: { readonly current: EditorProps },
): Generator<Extension> {
  yield theme;
  yield [lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), drawSelection()];
  // Characters that cannot be seen are shown, those that change the direction of a text among them.
  yield highlightSpecialChars();
  yield [rust(), indentUnit.of('    '), indentOnInput(), bracketMatching(), closeBrackets()];
  yield autocompletion({ override: [completeAnyWord] });
  yield [search({ top: true }), highlightSelectionMatches()];
  yield [history(), compiledField, lintGutter()];
  yield [EditorState.readOnly.of(isReadOnly), EditorView.contentAttributes.of({ 'aria-label': label })];
  yield keymap.of([
    {
      key: 'Mod-s',
      preventDefault: true,
      run: () => {
        latest.current.onSave();
        return true;
      },
    },
    ...[...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...lintKeymap, ...historyKeymap],
    ...[...defaultKeymap, indentWithTab],
  ]);
  yield EditorView.updateListener.of(({ docChanged, view, state }) => {
    if (!docChanged) return;
    latest.current.onInput(state.doc.toString());
    latest.current.onUpdate(view);
  });
}

/** The messages that have a place in the text, with what the compiler suggests. */
function marksOf(state: EditorState, diagnostics: readonly Diagnostic[]): Mark[] {
  return diagnostics.flatMap((diagnostic): Mark[] => {
    const span = spanOf(state, diagnostic);
    if (!span) return [];
    return [
      {
        ...span,
        severity: diagnostic.level === 'error' ? 'error' : 'warning',
        message: [diagnostic.message, ...primaryLabels(diagnostic)].join('\n'),
        actions: diagnostic.suggestions
          .filter((suggestion) => canApply(state, suggestion))
          .map((suggestion) => ({
            name: suggestion.message,
            apply: (view) => apply(view, suggestion),
          })),
      },
    ];
  });
}

/** What the compiler says at the place itself. */
const primaryLabels = ({ labels }: Diagnostic): string[] =>
  labels.flatMap(({ is_primary, text }) => (is_primary && text !== null ? [text] : []));
