/** A folder in parts that are small enough for messages: receiving one blocks the event loop for a millisecond. */
import { groupsOf } from '../../util/json-text.js';
import type { Folder, FolderDocument, ValueAtLine } from './folder.js';

/** All of them together are the whole. */
export interface FolderPart extends Partial<Pick<FolderDocument, 'head'>> {
  readonly sources?: readonly (readonly [path: string, code: string])[];
  readonly members?: MembersPart;
}

type Key = string | number;

/** Some members of an object that is too large for a message, or of a value within it, which were empty before. */
interface MembersPart {
  /** The list that the object is in. */
  readonly list: string;
  /** From the list to the value. */
  readonly path: readonly Key[];
  readonly members: readonly (readonly [key: Key, value: unknown])[];
}

const PART_CHARACTERS = 256 * 1024;

export function* partsOf({ head, lists, sources }: Folder): Generator<FolderPart> {
  yield { head };
  for (const [list, items] of Object.entries(lists))
    for (const members of partsOfMembers(list, [], items)) yield { members };
  let part: (readonly [string, string])[] = [];
  let characters = 0;
  for (const source of sources) {
    part.push(source);
    characters += source[1].length;
    if (characters < PART_CHARACTERS) continue;
    yield { sources: part };
    [part, characters] = [[], 0];
  }
  if (part.length > 0) yield { sources: part };
}

function* partsOfMembers(list: string, path: readonly Key[], value: object): Generator<MembersPart> {
  for (const { members, isLong } of groupsOf(value, PART_CHARACTERS)) {
    const [first] = members;
    if (!isLong || !first || !isContainer(first[1])) {
      yield { list, path, members };
      continue;
    }
    const [key, member] = first;
    yield { list, path, members: [[key, Array.isArray(member) ? [] : {}]] };
    yield* partsOfMembers(list, [...path, key], member);
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Puts the parts together again. */
export class FolderParts {
  #head: FolderDocument['head'] = [];
  readonly #lists: Record<string, ValueAtLine[]> = {};
  readonly #sources = new Map<string, string>();

  add({ head, members, sources }: FolderPart): void {
    if (head) this.#head = head;
    if (members) this.#addMembers(members);
    for (const [path, code] of sources ?? []) this.#sources.set(path, code);
  }

  #addMembers({ list, path, members }: MembersPart): void {
    const items = this.#lists[list] ?? [];
    this.#lists[list] = items;
    let value: object = items;
    for (const key of path) value = (value as Readonly<Record<Key, object>>)[key] ?? {};
    for (const [key, member] of members)
      if (Array.isArray(value)) value.push(member);
      // A key may have the name of what all objects inherit.
      else
        Object.defineProperty(value, key, {
          ...{ value: member, configurable: true, enumerable: true, writable: true },
        });
  }

  folder(): Folder {
    return { head: this.#head, lists: this.#lists, sources: this.#sources };
  }
}
