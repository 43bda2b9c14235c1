/** JSON of what may be large: how long it is, and its text piece by piece. */

/**
 * A text of pieces that were made one after the other. Put together, a very long one holds up the event loop where it
 * is first read. No piece ends within a character.
 */
export class LongText {
  constructor(readonly pieces: readonly string[]) {}

  toJSON(): string {
    return this.pieces.join('');
  }
}

/** Characters of a value besides its own: a comma, a colon, brackets or quotes. */
const BESIDES = 4;

/** About how many characters the JSON of a value has. It is not counted further than `most`. */
export function jsonSize(value: unknown, most: number): number {
  const pending: unknown[] = [value];
  let size = 0;
  while (pending.length > 0 && size <= most) {
    const one = pending.pop();
    size += BESIDES;
    if (typeof one === 'string') size += one.length;
    else if (Array.isArray(one)) {
      size += one.length;
      if (size <= most) for (const member of one) pending.push(member);
    } else if (typeof one === 'object' && one !== null)
      for (const name in one) {
        size += name.length + 1;
        if (size > most) break;
        pending.push((one as Readonly<Record<string, unknown>>)[name]);
      }
  }
  return size;
}

/**
 * The JSON of a value as `JSON.stringify` writes it, in pieces that are made from about so many characters: what is
 * longer is taken apart, strings too.
 */
export function* piecesOfJson(value: unknown, most: number): Generator<string, void, void> {
  if (jsonSize(value, most) <= most) yield JSON.stringify(value) ?? 'null';
  else yield* piecesOfLong(value, most);
}

function* piecesOfLong(value: unknown, most: number): Generator<string, void, void> {
  if (value instanceof LongText) {
    yield* piecesOfString(value.pieces, most);
    return;
  }
  const shown = hasOwnJson(value) ? value.toJSON() : value;
  if (typeof shown === 'string') yield* piecesOfString([shown], most);
  else if (typeof shown === 'object' && shown !== null) yield* piecesOfMembers(shown, most);
  else yield JSON.stringify(shown) ?? 'null';
}

function* piecesOfMembers(value: object, most: number): Generator<string, void, void> {
  const isList = Array.isArray(value);
  yield isList ? '[' : '{';
  let before = '';
  for (const { members, isLong } of groupsOf(value, most)) {
    const group = isList ? members.map(([, member]) => member) : Object.fromEntries(members);
    const [[key, member] = ['', undefined]] = members;
    if (isLong && (isList || !isLeftOut(member))) {
      yield isList ? before : `${before}${JSON.stringify(key)}:`;
      yield* piecesOfLong(member, most);
    } else {
      const text = JSON.stringify(group).slice(1, -1);
      if (text === '') continue;
      yield before + text;
    }
    before = ',';
  }
  yield isList ? ']' : '}';
}

type Member = [name: string | number, value: unknown];

/** Members of a value that together are not much longer than `most`, or one that is longer alone. */
export interface MemberGroup {
  readonly members: readonly Member[];
  readonly isLong: boolean;
}

/** The members of a list or an object in groups, by the characters of their JSON. */
export function* groupsOf(value: object, most: number): Generator<MemberGroup, void, void> {
  let group: Member[] = [];
  let size = 0;
  for (const one of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const own = jsonSize(one, most);
    if (group.length > 0 && size + own > most) {
      yield { members: group, isLong: false };
      [group, size] = [[], 0];
    }
    if (own > most) yield { members: [one], isLong: true };
    else {
      group.push(one);
      size += own;
    }
  }
  if (group.length > 0) yield { members: group, isLong: false };
}

function* piecesOfString(texts: readonly string[], most: number): Generator<string, void, void> {
  yield '"';
  for (const text of texts)
    for (const piece of piecesOfText(text, most)) yield JSON.stringify(piece).slice(1, -1);
  yield '"';
}

/** Text in pieces of about so many characters. No character is cut in two. */
export function* piecesOfText(text: string, length: number): Generator<string, void, void> {
  for (let at = 0; at < text.length; ) {
    const isCut = isHighSurrogate(text.charCodeAt(at + length - 1));
    const end = at + length + (isCut ? 1 : 0);
    yield text.slice(at, end);
    at = end;
  }
}

/** Whether it is the first half of a character. */
function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function hasOwnJson(value: unknown): value is { toJSON(): unknown } {
  return (
    typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
  );
}

/** Objects have no such members in JSON. */
function isLeftOut(value: unknown): boolean {
  return value === undefined || typeof value === 'function' || typeof value === 'symbol';
}
