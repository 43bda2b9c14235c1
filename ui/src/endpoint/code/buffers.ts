/**
 * The files in the editor: each has its text, its history, its cursor and the messages about it, and one of them is
 * shown.
 */
import { type Diagnostic as Mark, setDiagnostics } from '@codemirror/lint';
import { EditorState, type Extension, type Transaction, type TransactionSpec } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import type { Diagnostic } from '../../api/client.js';
import type { CheckedDraft } from './draft.js';
import { textAt } from './files.js';
import {
  changeOf,
  compiled,
  type Edit,
  isUntouched,
  type Located,
  offsetOf,
  type Span,
  type Suggestion,
  spanOf,
} from './places.js';

interface BuffersOptions {
  /** Undefined: there is no such file, or it has no text. */
  readonly textOf: (path: string) => string | undefined;
  readonly extensionsOf: (path: string) => Extension;
  /** Called when the text of a file has changed that is not shown. */
  readonly onInput: (path: string, text: string) => void;
  /** Called when a place in a file was asked for, and it is shown. */
  readonly onOpen: (path: string) => void;
}

export class Buffers {
  readonly #options: BuffersOptions;
  readonly #view: EditorView;
  #shown: string;
  /** Of the files that are not shown, as far as they were needed. */
  readonly #hidden = new Map<string, EditorState>();
  #checked: CheckedDraft | undefined;

  /** @param path of a file that has text */
  constructor(parent: HTMLElement, path: string, options: BuffersOptions) {
    this.#options = options;
    this.#shown = path;
    const state = this.#create(path, options.textOf(path) ?? '');
    this.#view = new EditorView({ parent, state });
  }

  destroy(): void {
    this.#view.destroy();
  }

  /** Shows a file, if it has text. */
  open(path: string): void {
    if (path === this.#shown) return;
    const state = this.#stateOf(path);
    if (!state) return;
    this.#hidden.delete(path);
    if (this.#options.textOf(this.#shown) !== undefined) this.#hidden.set(this.#shown, this.#view.state);
    this.#shown = path;
    this.#view.setState(state);
    this.#view.dispatch({ effects: EditorView.scrollIntoView(state.selection.main) });
  }

  /** Takes texts that were replaced from elsewhere. It can be undone. */
  takeTexts(): void {
    for (const path of this.#paths()) {
      const text = this.#options.textOf(path);
      if (text === undefined) this.#hidden.delete(path);
      else if (this.#stateOf(path)?.doc.toString() !== text)
        this.#update(path, ({ doc }) => ({ changes: { from: 0, to: doc.length, insert: text } }));
    }
  }

  /** Takes what the compiler said. */
  check(checked: CheckedDraft): void {
    this.#checked = checked;
    const paths = this.#paths();
    for (const path of paths)
      this.#update(path, (state) => ({ effects: compiled(state, textAt(checked.source, path)) }));
    for (const path of paths) this.#update(path, (state) => this.#marks(state, path));
  }

  /** The file that a message, or a part of it, is about. */
  fileOf({ file }: { readonly file?: string | null }): string {
    return file ?? this.#checked?.source.entry ?? this.#shown;
  }

  /** Where a message, or a part of it, is now; undefined when it is not about the handler's own source. */
  placeOf(range: Located): { readonly file: string; readonly span: Span; readonly line: number } | undefined {
    const file = this.fileOf(range);
    const state = this.#stateOf(file);
    const span = state && spanOf(state, range);
    return span && { file, span, line: state.doc.lineAt(span.from).number };
  }

  /** Shows a place and puts the cursor there. */
  goTo(path: string, { from, to }: Span): void {
    this.open(path);
    const show = () => {
      if (path !== this.#shown) return;
      this.#view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
      this.#view.focus();
    };
    show();
    if (path === this.#shown) this.#options.onOpen(path);
    // A file without text was shown in its place: the editor can be focused when it is drawn.
    if (!this.#view.hasFocus) requestAnimationFrame(show);
  }

  /** The same, for a line and a column. */
  goToLine(path: string, line: number, column: number): void {
    const state = this.#stateOf(path);
    if (!state) return;
    const from = offsetOf(state.doc, line, column);
    this.goTo(path, { from, to: from });
  }

  /** Whether all that a suggestion changes is still there as the compiler saw it. */
  canApply({ edits }: Suggestion): boolean {
    return (
      edits.length > 0 &&
      edits.every((edit) => {
        const state = this.#stateOf(this.fileOf(edit));
        return state !== undefined && isUntouched(state, edit);
      })
    );
  }

  /** Does what the compiler suggests, in all files, and shows the first place. */
  apply(suggestion: Suggestion): void {
    const [first] = suggestion.edits;
    if (!first || !this.canApply(suggestion)) return;
    const place = this.placeOf(first);
    for (const path of new Set(suggestion.edits.map((edit) => this.fileOf(edit)))) {
      const edits = suggestion.edits.filter((edit) => this.fileOf(edit) === path);
      this.#update(path, (state) => changesOf(state, edits));
    }
    if (place) this.goTo(place.file, { from: place.span.from, to: place.span.from });
  }

  #paths(): readonly string[] {
    return [this.#shown, ...this.#hidden.keys()];
  }

  #stateOf(path: string): EditorState | undefined {
    if (path === this.#shown) return this.#view.state;
    const text = this.#options.textOf(path);
    if (text === undefined) return undefined;
    const known = this.#hidden.get(path);
    if (known) return known;
    const checked = this.#checked;
    this.#hidden.set(path, this.#create(path, text));
    if (checked) {
      this.#update(path, (state) => ({ effects: compiled(state, textAt(checked.source, path)) }));
      this.#update(path, (state) => this.#marks(state, path));
    }
    return this.#hidden.get(path);
  }

  #create(path: string, text: string): EditorState {
    return EditorState.create({ doc: text, extensions: this.#options.extensionsOf(path) });
  }

  #update(path: string, specOf: (state: EditorState) => TransactionSpec): void {
    const state = this.#stateOf(path);
    const transaction: Transaction | undefined = state?.update(specOf(state));
    if (!transaction) return;
    if (path === this.#shown) {
      this.#view.dispatch(transaction);
      return;
    }
    this.#hidden.set(path, transaction.state);
    if (transaction.docChanged) this.#options.onInput(path, transaction.newDoc.toString());
  }

  /** The messages that have a place in this file, with what the compiler suggests. */
  #marks(state: EditorState, path: string): TransactionSpec {
    const diagnostics = this.#checked?.diagnostics ?? [];
    const marks = diagnostics.flatMap((diagnostic): Mark[] => {
      const span = this.fileOf(diagnostic) === path ? spanOf(state, diagnostic) : undefined;
      if (!span) return [];
      return [
        {
          ...span,
          severity: diagnostic.level === 'error' ? 'error' : 'warning',
          message: [diagnostic.message, ...primaryLabels(diagnostic)].join('\n'),
          actions: diagnostic.suggestions
            .filter((suggestion) => this.canApply(suggestion))
            .map((suggestion) => ({ name: suggestion.message, apply: () => this.apply(suggestion) })),
        },
      ];
    });
    return setDiagnostics(state, marks);
  }
}

/** What the compiler says at the place itself. */
const primaryLabels = ({ labels }: Diagnostic): string[] =>
  labels.flatMap(({ is_primary, text }) => (is_primary && text !== null ? [text] : []));

function changesOf(state: EditorState, edits: readonly Edit[]): TransactionSpec {
  return { changes: edits.map((edit) => changeOf(state, edit)), userEvent: 'input.suggestion' };
}
