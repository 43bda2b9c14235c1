/** The editor of the files of a handler. */
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
import { lintGutter, lintKeymap } from '@codemirror/lint';
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
import { Buffers } from './buffers.js';
import type { CheckedDraft } from './draft.js';
import { compiledField } from './places.js';
import { theme } from './theme.js';

interface EditorProps {
  /** Of the file that is shown, if it has text. */
  readonly path: string;
  /** The path of the code. */
  readonly entry: string;
  /** Undefined: there is no such file, or it has no text. */
  readonly textOf: (path: string) => string | undefined;
  /** Another number: texts were replaced from elsewhere. */
  readonly replaced: number;
  readonly isReadOnly: boolean;
  readonly checked: CheckedDraft | undefined;
  readonly onInput: (path: string, text: string) => void;
  /** Called when a place in a file was asked for. */
  readonly onOpen: (path: string) => void;
  /** Ctrl-S. */
  readonly onSave: () => void;
  /** Called with the files when they are there, and after each change of a text or of its messages. */
  readonly onUpdate: (buffers: Buffers) => void;
}

export function Editor(props: EditorProps) {
  const { path, replaced, isReadOnly, checked } = props;
  const parent = useRef<HTMLDivElement>(null);
  const made = useRef<Buffers>(undefined);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (!parent.current) return;
    const { path, entry, textOf } = latest.current;
    const buffers = new Buffers(parent.current, textOf(path) === undefined ? entry : path, {
      textOf: (path) => latest.current.textOf(path),
      extensionsOf: (path) => [...extensions(path, latest, () => made.current)],
      onInput: (path, text) => latest.current.onInput(path, text),
      onOpen: (path) => latest.current.onOpen(path),
    });
    made.current = buffers;
    latest.current.onUpdate(buffers);
    return () => buffers.destroy();
  }, [isReadOnly]);

  // Not with each change of a text: what is typed is in the editor before it is here.
  useLayoutEffect(() => {
    const buffers = made.current;
    if (!buffers) return;
    buffers.takeTexts();
    latest.current.onUpdate(buffers);
  }, [replaced]);

  useLayoutEffect(() => made.current?.open(path), [path]);

  useEffect(() => {
    const buffers = made.current;
    if (!buffers || !checked) return;
    buffers.check(checked);
    latest.current.onUpdate(buffers);
  }, [checked, isReadOnly]);

  return <div class="editor" ref={parent} />;
}

function* extensions(
  path: string,
  latest: { readonly current: EditorProps },
  buffers: () => Buffers | undefined,
): Generator<Extension> {
  const { entry, isReadOnly } = latest.current;
  const label = path === entry ? 'Code of the handler' : `Code of ${path}`;
  yield theme;
  yield [lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), drawSelection()];
  // Characters that cannot be seen are shown, those that change the direction of a text among them.
  yield highlightSpecialChars();
  if (path.endsWith('.rs')) yield rust();
  yield [indentUnit.of('    '), indentOnInput(), bracketMatching(), closeBrackets()];
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
  yield EditorView.updateListener.of(({ docChanged, state }) => {
    if (!docChanged) return;
    latest.current.onInput(path, state.doc.toString());
    const now = buffers();
    if (now) latest.current.onUpdate(now);
  });
}
