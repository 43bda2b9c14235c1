/**
 * Places in the text of one file: rustc counts lines and characters from 1, the editor UTF-16 units from 0. They are
 * those of the text that was compiled, and move with what is written after that.
 */
import {
  type ChangeDesc,
  ChangeSet,
  type ChangeSpec,
  type EditorState,
  StateEffect,
  StateField,
  Text,
} from '@codemirror/state';
import type { Diagnostic } from '../../api/client.js';

export type Suggestion = Diagnostic['suggestions'][number];
export type Edit = Suggestion['edits'][number];

/** Offsets of UTF-16 units, the second behind the last. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

interface CompiledText {
  readonly text: Text;
  /** The changes from the text that was compiled to the text that is there. */
  readonly changes: ChangeDesc;
}

const setCompiled = StateEffect.define<CompiledText | undefined>();

export const compiledField = StateField.define<CompiledText | undefined>({
  create: () => undefined,
  update: (value, { effects, docChanged, changes }) => {
    const set = effects.find((effect) => effect.is(setCompiled));
    if (set) return set.value as CompiledText | undefined;
    return value && docChanged ? { ...value, changes: value.changes.composeDesc(changes.desc) } : value;
  },
});

/**
 * Says which text has been compiled; places are of that one.
 * @param compiledText undefined: this file was not there
 */
export function compiled(state: EditorState, compiledText: string | undefined): StateEffect<unknown> {
  if (compiledText === undefined) return setCompiled.of(undefined);
  const text = Text.of(compiledText.split('\n'));
  return setCompiled.of({ text, changes: changeBetween(compiledText, state.doc.toString()) });
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

/** A message of the compiler, or a part of it. */
export type Located = Pick<Diagnostic, 'file' | 'line' | 'column' | 'end_line' | 'end_column'>;

/** Where a message about this file is now; undefined when it is not about the handler's own source. */
export function spanOf(
  state: EditorState,
  { line, column, end_line, end_column }: Located,
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

/** Whether what an edit of this file changes is still there as the compiler saw it. */
export function isUntouched(state: EditorState, edit: Edit): boolean {
  const now = state.field(compiledField);
  if (!now || state.readOnly) return false;
  const { from, to } = spanIn(now.text, edit);
  return now.changes.touchesRange(from, to) === false;
}

/** The change that an edit of this file is now. */
export function changeOf(state: EditorState, edit: Edit): ChangeSpec {
  const now = state.field(compiledField);
  if (!now) return [];
  const { from, to } = spanIn(now.text, edit);
  return { from: now.changes.mapPos(from), to: now.changes.mapPos(to), insert: edit.replacement };
}
