/** Converts the JSON output of rustc and cargo to text for people and data for tools. */
import { posix } from 'node:path';
import type { Diagnostic, SourceRange, Suggestion } from '../model/diagnostic.js';
import { storable } from '../util/text.js';
import type { ToolLimits, ToolResult } from './run-tool.js';

/** Why a tool failed. */
export interface FailedTool {
  readonly ok: false;
  /** If not `exited`, the only diagnostic says why. */
  readonly outcome: ToolResult['outcome'];
  /** Whether a report of a full disk can be true. */
  readonly diskMayBeFull: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

/** More than a person reads, and few enough for one row of a table. */
export const MAX_DIAGNOSTICS = 100;
const MAX_TEXT_CHARACTERS = 128 * 1024;
/** Labels and suggestions of one diagnostic, and how long each may be. */
const MAX_PARTS = 20;
const MAX_PART_CHARACTERS = 2000;
/** Limit for all diagnostics of a build together. */
const MAX_TOTAL_CHARACTERS = 1024 * 1024;

/**
 * Parses the lines of `rustc --error-format=json`; lines that are not JSON, such as those of a linker or a crashed
 * compiler, become diagnostics without a position.
 * @param files paths of the handler's source: positions in other files are left out
 */
export function parseRustcOutput(stderr: string, files: ReadonlySet<string>): Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  let characters = 0;
  for (const line of stderr.split('\n')) {
    if (line.trim() === '') continue;
    characters += line.length;
    if (characters > MAX_TOTAL_CHARACTERS && diagnostics.length > 0) break;
    const message = parseJson(line);
    const diagnostic = message === undefined ? plain(line) : fromRustc(message, files);
    if (diagnostic) diagnostics.push(diagnostic);
    if (diagnostics.length === MAX_DIAGNOSTICS) break;
  }
  return diagnostics;
}

/** The text of all diagnostics, as on a terminal. */
export function renderDiagnostics(diagnostics: readonly Diagnostic[]): string {
  const text = diagnostics
    .map(({ rendered }) => rendered.trimEnd())
    .join('\n\n')
    .trim();
  return shortened(text);
}

function shortened(text: string): string {
  return text.length <= MAX_TEXT_CHARACTERS ? text : `${text.slice(0, MAX_TEXT_CHARACTERS)}\n... (shortened)`;
}

const NOWHERE = { file: null, line: null, column: null, end_line: null, end_column: null };

/** A message without a position or code. */
export function plain(text: string, level = 'error'): Diagnostic {
  const message = storable(shortened(text));
  return { level, code: null, message, ...NOWHERE, labels: [], suggestions: [], rendered: message };
}

/** The message for a build that was stopped by a limit or aborted; undefined when it ended normally. */
export function whyEnded(outcome: ToolResult['outcome'], limits: ToolLimits): Diagnostic | undefined {
  switch (outcome) {
    case 'exited':
    // Of crates, which say themselves what it means.
    case 'no-progress':
      return undefined;
    case 'aborted':
      return plain('The build was cancelled.');
    case 'timed-out':
      return plain(
        `The build did not end within ${limits.timeoutMs / 1000} s and was stopped (COMPILE_TIMEOUT_MS).`,
      );
    case 'idle':
      return plain(
        'The compiler waited for something that did not come and was stopped: `include_str!` or another macro may have ' +
          'read a pipe. If the source has no such macro, try again.',
      );
    case 'over-memory':
      return plain(
        `The processes of the build used more than ${limits.totalMemoryMb} MiB of memory together and were stopped ` +
          '(COMPILE_TOTAL_MEMORY_MB).',
      );
    case 'over-disk':
      return plain(`The build wrote more than ${limits.diskMb} MiB and was stopped (COMPILE_DISK_MB).`);
  }
}

/** Folders of this machine, and the names to show for them. */
export type FolderNames = readonly (readonly [folder: string, name: string])[];

/**
 * Paths of the sources of crates and of the standard library. Matched at the beginning of words only: a match anywhere
 * would take quadratic time in the length of words.
 */
const CRATE_SOURCES = /(?<![^\s"'`(])[^\s"'`(]*\/(?:registry\/src\/[^/\s]+|rustlib\/src\/rust)\//g;

/** The same diagnostics, with paths of this machine replaced: they mean nothing to the author of a handler. */
export function withoutMachinePaths(
  diagnostics: readonly Diagnostic[],
  names: FolderNames = [],
): readonly Diagnostic[] {
  const folders = [...names].sort(([a], [b]) => b.length - a.length);
  const clean = (text: string) =>
    folders
      .reduce((cleaned, [folder, name]) => cleaned.replace(wholePath(folder), () => name), text)
      .replace(CRATE_SOURCES, '');
  return diagnostics.map((diagnostic) => ({
    ...diagnostic,
    message: clean(diagnostic.message),
    labels: diagnostic.labels.map((label) => ({ ...label, text: label.text && clean(label.text) })),
    suggestions: diagnostic.suggestions.map((suggestion) => ({
      ...suggestion,
      message: clean(suggestion.message),
    })),
    rendered: clean(diagnostic.rendered),
  }));
}

/** Matches a path that is not the beginning of another name. */
function wholePath(path: string): RegExp {
  return new RegExp(`(?<![\\w.-])${path.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?![\\w-]|\\.\\w)`, 'g');
}

function parseJson(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined; // not JSON: shown as it is
  }
}

// The fields we use of https://doc.rust-lang.org/rustc/json.html. Macros can print such lines with any content.
interface Span {
  readonly file_name?: unknown;
  readonly line_start?: unknown;
  readonly column_start?: unknown;
  readonly line_end?: unknown;
  readonly column_end?: unknown;
  readonly is_primary?: unknown;
  readonly label?: unknown;
  readonly suggested_replacement?: unknown;
  readonly suggestion_applicability?: unknown;
  readonly expansion?: { readonly span?: Span } | null;
}

function fromRustc(message: Record<string, unknown>, files: ReadonlySet<string>): Diagnostic | undefined {
  const { $message_type, level, message: text, rendered, spans, code, children } = message;
  if ($message_type !== undefined && $message_type !== 'diagnostic') return undefined;
  if (typeof level !== 'string' || typeof text !== 'string') return undefined;
  // Summaries of the compiler ("aborting due to 2 previous errors", "try --explain") add nothing.
  if (level === 'failure-note' || /^aborting due to /.test(text) || /^\d+ warnings? emitted/.test(text))
    return undefined;
  const labels = objects<Span>(spans).flatMap((span) => labelOf(span, files) ?? []);
  const {
    file = null,
    line,
    column,
    end_line,
    end_column,
  } = labels.find(({ is_primary }) => is_primary) ?? labels[0] ?? NOWHERE;
  return {
    level: storable(shortened(level)),
    code:
      typeof code === 'object' && code !== null && 'code' in code
        ? storable(shortened(String(code.code)))
        : null,
    message: storable(shortened(text)),
    ...{ file, line, column, end_line, end_column },
    labels: labels.slice(0, MAX_PARTS),
    suggestions: objects<Record<string, unknown>>(children)
      .flatMap((child) => suggestionsOf(child, files))
      .slice(0, MAX_PARTS),
    rendered: storable(shortened(typeof rendered === 'string' ? rendered : text)),
  };
}

function objects<T extends object>(list: unknown): T[] {
  return Array.isArray(list) ? list.filter((item) => typeof item === 'object' && item !== null) : [];
}

function labelOf(span: Span, files: ReadonlySet<string>): Diagnostic['labels'][number] | undefined {
  // An error inside a macro points into the macro's crate; its expansion leads back to the author's line.
  for (let at: Span | null | undefined = span; at; at = at.expansion?.span) {
    const range = rangeOf(at, files);
    if (!range) continue;
    const text = typeof span.label === 'string' ? storable(span.label.slice(0, MAX_PART_CHARACTERS)) : null;
    return { ...range, text, is_primary: span.is_primary === true };
  }
  return undefined;
}

/** @returns undefined for one that is not in the source */
function rangeOf(
  { file_name, line_start, column_start, line_end, column_end }: Span,
  files: ReadonlySet<string>,
): SourceRange | undefined {
  // `#[path = "../x.rs"]` in src/main.rs is src/../x.rs.
  const file = typeof file_name === 'string' ? posix.normalize(file_name) : '';
  if (!files.has(file)) return undefined;
  const numbers = [line_start, column_start, line_end, column_end];
  if (!numbers.every((value): value is number => Number.isSafeInteger(value))) return undefined;
  const [line = 0, column = 0, end_line = 0, end_column = 0] = numbers;
  return { file, line, column, end_line, end_column };
}

/** The suggestion of a sub-diagnostic. Alternatives replace the same position; other edits belong together. */
function suggestionsOf(
  { message, spans }: Record<string, unknown>,
  files: ReadonlySet<string>,
): Suggestion[] {
  const suggested = objects<Span>(spans).filter((span) => typeof span.suggested_replacement === 'string');
  const edits = suggested.flatMap((span) => {
    const range = rangeOf(span, files);
    const replacement = storable(String(span.suggested_replacement));
    return range && replacement.length <= MAX_PART_CHARACTERS ? [{ ...range, replacement }] : [];
  });
  // An incomplete edit would break the source.
  if (edits.length === 0 || edits.length < suggested.length || edits.length > MAX_PARTS) return [];
  const places = new Set(edits.map(({ file, line, column }) => `${file}:${line}:${column}`));
  const applicability = suggested[0]?.suggestion_applicability;
  const facts = {
    message: storable(String(message).slice(0, MAX_PART_CHARACTERS)),
    applicability: typeof applicability === 'string' ? storable(applicability.slice(0, 100)) : null,
  };
  if (places.size === edits.length) return [{ ...facts, edits }];
  return places.size === 1 ? edits.map((edit) => ({ ...facts, edits: [edit] })) : [];
}

/** The label of E0432 and E0433, and the message of E0463; the wording depends on the version of rustc. */
const MISSING_CRATE =
  /^(?:use of (?:unresolved module or unlinked crate|undeclared crate or module)|no external crate|can't find crate for) `(\w+)`/;
const MISSING_CRATE_CODES = ['E0432', 'E0433', 'E0463'];
/** The advice of rustc, which applies only to projects with a Cargo.toml. */
const RUSTC_HELP =
  /^( *= help: )(?:you might be missing a crate named|use `cargo add|if you wanted to use a crate named|consider adding).*$/gm;

/** The same diagnostic; for a missing crate with a line, and a suggestion without edits, that say where to add it. */
export function withCrateHelp(diagnostic: Diagnostic): Diagnostic {
  const { code, labels, message, rendered, suggestions } = diagnostic;
  if (code === null || !MISSING_CRATE_CODES.includes(code)) return diagnostic;
  const texts = [...labels.filter(({ is_primary }) => is_primary).map(({ text }) => text ?? ''), message];
  const name = texts.map((text) => MISSING_CRATE.exec(text)?.[1]).find((one) => one !== undefined);
  if (name === undefined) return diagnostic;
  const help = `if \`${name}\` is a crate, add it to the endpoint's "dependencies": {"${name}": "<version>"}`;
  const kept = rendered.replace(RUSTC_HELP, '').trimEnd();
  const margin = `${/^ *(?=-->)/m.exec(kept)?.[0] ?? ''} `;
  const gap = kept.endsWith('|') ? '' : `${margin}|\n`;
  return {
    ...diagnostic,
    suggestions: [{ message: help, applicability: null, edits: [] }, ...suggestions],
    rendered: `${kept}\n${gap}${margin}= help: ${help}\n`,
  };
}
