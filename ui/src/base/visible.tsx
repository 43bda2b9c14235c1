/** Text that somebody else has written, with the characters made visible that hide or reorder what is around them. */
import type { ComponentChildren } from 'preact';

/** Control characters but tab and line feed, characters that turn the direction of text, and those without a width. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to show
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc]/g;

const NAMED: ReadonlyMap<number, string> = new Map([
  [0x00, 'NUL'],
  [0x08, 'BS'],
  [0x0d, 'CR'],
  [0x1b, 'ESC'],
  [0x7f, 'DEL'],
]);

/** The name of a character, or its number. */
function nameOf(character: string): string {
  const code = character.charCodeAt(0);
  return NAMED.get(code) ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

interface VisibleProps {
  readonly text: string;
  /** Ends of lines are shown as signs, for what has one line of space. */
  readonly isOneLine?: boolean;
}

/** Text as it is, with what cannot be seen as marked signs. */
export function Visible({ text, isOneLine }: VisibleProps) {
  const shown = isOneLine ? text.replaceAll('\n', ' \u23ce ') : text;
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const { 0: character, index } of shown.matchAll(HIDDEN)) {
    parts.push(shown.slice(from, index), <Sign key={index} character={character} />);
    from = index + 1;
  }
  return (
    <bdi>
      {parts}
      {shown.slice(from)}
    </bdi>
  );
}

function Sign({ character }: { readonly character: string }) {
  return <span class="hidden-character">{nameOf(character)}</span>;
}
