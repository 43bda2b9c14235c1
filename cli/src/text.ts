/** Text for a terminal: colours, tables, and what others have written made harmless. */

/** Control characters and those that change the direction of text. Lines may be kept. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
const LINES = /[\n\t\r]/g;
const NAMES: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

/** Several lines of somebody else, without what a terminal would obey. */
export function safeText(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(CONTROL, escaped);
}

/** The same on one line. */
export function safeLine(text: string): string {
  return text.replace(LINES, escaped).replace(CONTROL, escaped);
}

function escaped(character: string): string {
  return NAMES[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
export type Colour = keyof typeof CODES;

/** Colours a text; the text is not changed where there are no colours. */
export type Paint = (colour: Colour, text: string) => string;

export function painter(hasColours: boolean): Paint {
  return (colour, text) => (hasColours && text !== '' ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text);
}

/** Rows of texts as aligned columns. Cells are made harmless. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[], paint: Paint): string {
  const all = [head.map((cell) => cell.toUpperCase()), ...rows.map((row) => row.map(safeLine))];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  return [paint('dim', lines[0] ?? ''), ...lines.slice(1)].map((line) => `${line}\n`).join('');
}

/** Names and values, a line each. */
export function listOf(pairs: readonly (readonly [name: string, value: string])[], paint: Paint): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs
    .map(([name, value]) => `${paint('dim', name.padEnd(width))}  ${safeLine(value)}`.trimEnd())
    .map((line) => `${line}\n`)
    .join('');
}

/** A time, as people read it. */
export function timeOf(iso: string | null | undefined): string {
  return iso ? iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z') : '';
}
