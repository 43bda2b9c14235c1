/** Turns what rustc and cargo print as JSON into text for people and data for tools. */

import { printable } from '../printable.js';
import type { ToolLimits, ToolResult } from './run-tool.js';

/** One message of the compiler. */
export interface Diagnostic {
  /** `error`, `warning`, `note`, `help`. */
  readonly level: string;
  /** e.g. `E0425` or the name of a lint; null when there is none. */
  readonly code: string | null;
  readonly message: string;
  /** First line of the place, counted from 1, in the handler's own source; null when it has none there. */
  readonly line: number | null;
  /** First column of the place, counted from 1. */
  readonly column: number | null;
  /** As a terminal shows it, without colour. */
  readonly rendered: string;
}

/** Why a tool has not made what it was to make. */
export interface FailedTool {
  readonly ok: false;
  readonly timedOut: boolean;
  /** Whether what it says of a full disk can be true. */
  readonly mayLackRoom: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

/** More than anybody reads, and little enough for one row of a table. */
export const MAX_DIAGNOSTICS = 100;
const MAX_TEXT_CHARACTERS = 128 * 1024;
/** Of all diagnostics of a build together. */
const MAX_TOTAL_CHARACTERS = 1024 * 1024;

/**
 * Reads the lines of `rustc --error-format=json`; lines that are not JSON (a linker's or a crashing compiler's own
 * words) become diagnostics without a place.
 * @param sourceFile the handler's source as rustc names it: places elsewhere get no line
 */
export function parseRustcOutput(stderr: string, sourceFile: string): Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  let characters = 0;
  for (const line of stderr.split('\n')) {
    if (line.trim() === '') continue;
    characters += line.length;
    if (characters > MAX_TOTAL_CHARACTERS && diagnostics.length > 0) break;
    const message = parseJson(line);
    const diagnostic = message === undefined ? plain(line) : fromRustc(message, sourceFile);
    if (diagnostic) diagnostics.push(diagnostic);
    if (diagnostics.length === MAX_DIAGNOSTICS) break;
  }
  return diagnostics;
}

/** The text of all diagnostics, as a terminal would have shown it. */
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

/** A message without a place or code. */
export function plain(text: string, level = 'error'): Diagnostic {
  const message = printable(shortened(text));
  return { level, code: null, message, line: null, column: null, rendered: message };
}

/** What is said of a build that was ended for a limit, or because nobody needs it; undefined when it ended by itself. */
export function whyEnded(outcome: ToolResult['outcome'], limits: ToolLimits): Diagnostic | undefined {
  switch (outcome) {
    case 'exited':
      return undefined;
    case 'aborted':
      return plain('The build was cancelled.');
    case 'timed-out':
      return plain(
        `The build did not end within ${limits.timeoutMs / 1000} s and was stopped (COMPILE_TIMEOUT_MS).`,
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

/** Folders of this machine, and what they are called towards others. */
export type FolderNames = readonly (readonly [folder: string, name: string])[];

/**
 * Where crates and the standard library have their sources on this machine; what follows begins with their name. It is
 * looked for at the beginning of words only: anywhere in them would take a time that grows with the square of their length.
 */
const CRATE_SOURCES = /(?<![^\s"'`(])[^\s"'`(]*\/(?:registry\/src\/[^/\s]+|rustlib\/src\/rust)\//g;

/** The same diagnostics, without paths of this machine: they are of no use to the author of a handler. */
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
    rendered: clean(diagnostic.rendered),
  }));
}

/** Finds a path where it is not the beginning of another name. */
function wholePath(path: string): RegExp {
  return new RegExp(`(?<![\\w.-])${path.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?![\\w-]|\\.\\w)`, 'g');
}

function parseJson(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined; // a line that only looks like JSON is shown as it is
  }
}

// The fields used of https://doc.rust-lang.org/rustc/json.html
interface Span {
  readonly file_name?: string;
  readonly line_start?: number;
  readonly column_start?: number;
  readonly is_primary?: boolean;
  readonly expansion?: { readonly span?: Span } | null;
}

function fromRustc(message: Record<string, unknown>, sourceFile: string): Diagnostic | undefined {
  const { $message_type, level, message: text, rendered, spans, code } = message;
  if ($message_type !== undefined && $message_type !== 'diagnostic') return undefined;
  if (typeof level !== 'string' || typeof text !== 'string') return undefined;
  // Closing remarks of the compiler ("aborting due to 2 previous errors", "try --explain") say nothing new.
  if (level === 'failure-note' || /^aborting due to /.test(text) || /^\d+ warnings? emitted/.test(text))
    return undefined;
  const place = placeInSource(Array.isArray(spans) ? (spans as Span[]) : [], sourceFile);
  return {
    level: printable(shortened(level)),
    code:
      typeof code === 'object' && code !== null && 'code' in code
        ? printable(shortened(String(code.code)))
        : null,
    message: printable(shortened(text)),
    line: wholeNumber(place?.line_start),
    column: wholeNumber(place?.column_start),
    rendered: printable(shortened(typeof rendered === 'string' ? rendered : text)),
  };
}

function wholeNumber(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null;
}

function placeInSource(spans: readonly Span[], sourceFile: string): Span | undefined {
  for (const span of [...spans.filter((span) => span?.is_primary), ...spans]) {
    // An error inside a macro points into the macro's crate; its expansion leads back to the author's line.
    for (let at: Span | null | undefined = span; at; at = at.expansion?.span) {
      if (at.file_name === sourceFile) return at;
    }
  }
  return undefined;
}
