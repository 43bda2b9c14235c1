/**
 * Escapes untrusted text for Rust source, as string literals and as comments. Whatever the text is, none of it becomes
 * code, and rustc reports no warning about it.
 */

/** Line width of rustfmt. */
const LINE_WIDTH = 100;

/**
 * Characters that have to be escaped: control characters, lone surrogates, invisible characters, those that change the
 * text direction (rustc rejects these), and all spaces but U+0020.
 */
const NOT_PRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** A string literal with exactly this value, except that a lone surrogate becomes U+FFFD. */
export function stringLiteral(text: string): string {
  const escaped = wellFormed(text)
    .replace(/[\\"]/g, '\\$&')
    .replace(NOT_PRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  return `"${escaped}"`;
}

/** The text on one line, without unprintable characters, truncated with `…` to `maxLength` characters. */
export function oneLine(text: string, maxLength: number): string {
  // Bounds the work for long texts; a character has at most two UTF-16 code units.
  const line = wellFormed(text.slice(0, maxLength * 4))
    .replace(/\s+/g, ' ')
    .replace(NOT_PRINTABLE, '')
    .trim();
  const characters = [...line];
  return characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : line;
}

/** Line comments, wrapped at spaces. Each paragraph must be a single line, see `oneLine`. */
export function comment(paragraphs: readonly string[], marker = '//'): string[] {
  return paragraphs.flatMap((paragraph, at) => [
    ...(at > 0 ? [marker] : []),
    ...wrap(paragraph.split(' '), LINE_WIDTH - marker.length - 1).map((line) => `${marker} ${line}`),
  ]);
}

/** Words in lines, by default of indented code. */
export function wrap(words: readonly string[], width = LINE_WIDTH - 4): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of words) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

/** A `let` statement, broken after the `=` when it is longer than a line. */
export function letStatement(pattern: string, value: string): string[] {
  const line = `    let ${pattern} = ${value};`;
  return line.length <= LINE_WIDTH ? [line] : [`    let ${pattern} =`, `        ${value};`];
}

function wellFormed(text: string): string {
  return text.replace(/\p{Cs}/gu, '\ufffd');
}
