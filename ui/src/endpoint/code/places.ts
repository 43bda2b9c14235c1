/**
 * Places in the text: rustc counts lines and characters from 1, the editor UTF-16 units from 0. They are those of the
 * text that was compiled, and move with what is written after that.
 */
import {
  type ChangeDesc,
  ChangeSet,
  type EditorState,
  StateEffect,
  StateField,
  Text,
} from '@codemirror/state';
import type { EditorView } from '@codemirror/view';
import type { Diagnostic } from '../../api/client.js';

type Suggestion = Diagnostic['suggestions'][number];

/** Offsets of UTF-16 units, the second behind the last. */
interface Span {
  readonly from: number;
  readonly to: number;
}

interface CompiledText {
  readonly text: Text;
  /** The changes from the text that was compiled to the text that is there. */
  readonly changes: ChangeDesc;
}

const setCompiled = StateEffect.define<CompiledText>();

export const compiledField = StateField.define<CompiledText | undefined>({
  create: () => undefined,
  update: (value, { effects, docChanged, changes }) => {
    const set = effects.find((effect) => effect.is(setCompiled));
    if (set) return set.value as CompiledText;
    return value && docChanged ? { ...value, changes: value.changes.composeDesc(changes.desc) } : value;
  },
});

/** Says which text has been compiled; places are of that one. */
export function compiled(state: EditorState, code: string): StateEffect<unknown> {
  const text = Text.of(code.split('\n'));
  return setCompiled.of({ text, changes: changeBetween(code, state.doc.toString()) });
}

/** One change that makes a text of another. */
function changeBetween(before: string, after: string): ChangeSet {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  if (start === before.length && start === after.length) return ChangeSet.empty(before.length);
  const insert = after.slice(start, after.length - end);
  return ChangeSet.of({ from: start, to: before.length - end, insert }, before.length);
}

/** The offset of a place in a text; the nearest one where it is not there. */
export function offsetOf(text: Text, line: number, column: number): number {
  if (line > text.lines) return text.length;
  const { from, text: content } = text.line(Math.max(1, line));
  let units = 0;
  for (let left = column - 1; left > 0 && units < content.length; left--)
    units += (content.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  return from + units;
}

interface RustcRange {
  readonly line: number;
  readonly column: number;
  readonly end_line: number;
  readonly end_column: number;
}

function spanIn(text: Text, { line, column, end_line, end_column }: RustcRange): Span {
  const from = offsetOf(text, line, column);
  return { from, to: Math.max(from, offsetOf(text, end_line, end_column)) };
}

/** Where a message, or a part of it, is now; undefined when it is not about the handler's own source. */
export function spanOf(
  state: EditorState,
  { line, column, end_line, end_column }: Pick<Diagnostic, 'line' | 'column' | 'end_line' | 'end_column'>,
): Span | undefined {
  const now = state.field(compiledField);
  if (!now || line === null || column === null) return undefined;
  const range = { line, column, end_line: end_line ?? line, end_column: end_column ?? column };
  const { from, to } = spanIn(now.text, range);
  return {
    from: now.changes.mapPos(from, 1),
    to: Math.max(now.changes.mapPos(to, -1), now.changes.mapPos(from, 1)),
  };
}

/** Whether what a suggestion changes is still there as the compiler saw it. */
export function canApply(state: EditorState, { edits }: Suggestion): boolean {
  const now = state.field(compiledField);
  if (!now || edits.length === 0 || state.readOnly) return false;
  return edits.every((edit) => {
    const { from, to } = spanIn(now.text, edit);
    return now.changes.touchesRange(from, to) === false;
  });
}

/** Does what the compiler suggests. */
export function apply(view: EditorView, suggestion: Suggestion): void {
  const now = view.state.field(compiledField);
  if (!now || !canApply(view.state, suggestion)) return;
  const changes = suggestion.edits.map((edit) => {
    const { from, to } = spanIn(now.text, edit);
    return { from: now.changes.mapPos(from), to: now.changes.mapPos(to), insert: edit.replacement };
  });
  const [first] = changes;
  view.dispatch({
    changes,
    ...(first && { selection: { anchor: first.from } }),
    ...{ scrollIntoView: true, userEvent: 'input.suggestion' },
  });
  view.focus();
}

/** Shows a place and puts the cursor there. */
export function goTo(view: EditorView, { from, to }: Span): void {
  view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
  view.focus();
}
