/** What the compiler has said, where only its text is known: the build is gone, or not to be seen. */

export interface CompilerError {
  readonly message: string;
  /** Such as `handler.rs:4:5`; undefined: it is about the whole handler. */
  readonly place: string | undefined;
}

const ERROR = /^error(?:\[E\d+\])?: (.+)(?:\n\s*--> (?!\/)(.+:\d+:\d+))?/m;

/** The first error in a text such as that of a terminal; undefined when it is no text of the compiler. */
export function compilerErrorOf(text: string | null): CompilerError | undefined {
  const [, message, place] = ERROR.exec(text ?? '') ?? [];
  return message === undefined ? undefined : { message, place };
}
