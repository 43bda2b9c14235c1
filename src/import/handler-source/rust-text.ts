/**
 * Puts text of strangers into Rust source: as string literals and as comments, and nowhere else. Whatever the text is,
 * nothing of it becomes code, and the compiler has nothing to say about it.
 */

/** Longest line of generated source, as rustfmt has it. */
const LINE_WIDTH = 100;

/**
 * What cannot stand in source as it is: control characters, halves of surrogate pairs, characters that are not seen or
 * turn the direction of the text (which rustc refuses), and all spaces but the usual one.
 */
const NOT_PRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** A string literal that stands for exactly this text; half a surrogate pair, which is no character, becomes U+FFFD. */
export function stringLiteral(text: string): string {
  const escaped = wellFormed(text)
    .replace(/[\\"]/g, '\\$&')
    .replace(NOT_PRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  return `"${escaped}"`;
}

/** Text on one line, without what cannot be printed, cut with `…` to so many characters. */
export function oneLine(text: string, maxLength: number): string {
  // Of a long text, only as much is looked at as can be left of it: each character is at most two units.
  const line = wellFormed(text.slice(0, maxLength * 4))
    .replace(/\s+/g, ' ')
    .replace(NOT_PRINTABLE, '')
    .trim();
  const characters = [...line];
  return characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : line;
}

/** Line comments, wrapped at spaces. Each paragraph has to be one line, see `oneLine`. */
export function comment(paragraphs: readonly string[], marker = '//'): string[] {
  return paragraphs.flatMap((paragraph, at) => [
    ...(at > 0 ? [marker] : []),
    ...wrap(paragraph, LINE_WIDTH - marker.length - 1).map((line) => `${marker} ${line}`),
  ]);
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

/** A `let`, broken behind the `=` when it is too long for one line. */
export function letStatement(pattern: string, value: string): string[] {
  const line = `    let ${pattern} = ${value};`;
  return line.length <= LINE_WIDTH ? [line] : [`    let ${pattern} =`, `        ${value};`];
}

function wellFormed(text: string): string {
  return text.replace(/\p{Cs}/gu, '\ufffd');
}
