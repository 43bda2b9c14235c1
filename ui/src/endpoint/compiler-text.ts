/** What the compiler has said, where only its text is known: the build is gone, or not to be seen. */

export interface CompilerError {
  readonly message: string;
  /** Undefined: it is about the whole handler. */
  readonly place: { readonly line: string; readonly column: string } | undefined;
}

const ERROR = /^error(?:\[E\d+\])?: (.+)(?:\n\s*--> handler\.rs:(\d+):(\d+))?/m;

/** The first error in a text such as that of a terminal; undefined when it is no text of the compiler. */
export function compilerErrorOf(text: string | null): CompilerError | undefined {
  const [, message, line, column] = ERROR.exec(text ?? '') ?? [];
  if (message === undefined) return undefined;
  return { message, place: line === undefined || column === undefined ? undefined : { line, column } };
}
