/** YAML as exports have it: without anchors and folded lines. */
import { Document, isScalar, visit } from 'yaml';

export function yamlText(content: object): string {
  const document = new Document(content, { aliasDuplicateObjects: false });
  visit(document, {
    // Plain, it would merge maps where it is read.
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === '<<') key.type = 'QUOTE_DOUBLE';
    },
    // The library writes lines that do not say how many spaces there are at the end.
    Scalar: (_, scalar) => {
      if (endsInSpaces(scalar.value)) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  const unfolded = { lineWidth: 0, doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY };
  return document.toString({ ...unfolded, blockQuote: 'literal' });
}

/** Whether it is several lines, and has spaces besides line feeds at its end. */
function endsInSpaces(text: unknown): boolean {
  if (typeof text !== 'string' || !text.includes('\n')) return false;
  return /[^\n]/.test(text.slice(text.trimEnd().length));
}

/** A list of objects. */
export interface YamlList {
  readonly items: readonly object[];
  /** Spaces before each line. */
  readonly indent: number;
}

export function yamlList({ items, indent }: YamlList): string {
  const text = yamlText(items);
  // A line ends at a line feed only: other separators of lines are characters of texts.
  return indent === 0 ? text : text.replace(/(^|\n)(?!\n|$)/g, `$1${' '.repeat(indent)}`);
}
