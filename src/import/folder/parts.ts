/** A folder in parts that are small enough for messages: receiving one blocks the event loop for a millisecond. */
import { groupsOf } from '../../util/json-text.js';
import type { Folder, FolderDocument, FolderSource, ValueAtLine } from './folder.js';

/** All of them together are the whole. */
export interface FolderPart extends Partial<Pick<FolderDocument, 'head'>> {
  readonly sources?: readonly (readonly [name: string, source: FolderSource])[];
  readonly contents?: readonly (readonly [digest: string, content: Uint8Array])[];
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
/** About what a path takes with its digest. */
const PATH_CHARACTERS = 150;

export function* partsOf({ head, lists, sources, contents }: Folder): Generator<FolderPart> {
  yield { head };
  for (const [list, items] of Object.entries(lists))
    for (const members of partsOfMembers(list, [], items)) yield { members };
  for (const part of inParts(
    sources,
    ({ code, files }) => code.length + PATH_CHARACTERS * Object.keys(files ?? {}).length,
  ))
    yield { sources: part };
  for (const part of inParts(contents, ({ length }) => length)) yield { contents: part };
}

/** Entries in parts of about equal size. */
export function* inParts<T>(
  entries: ReadonlyMap<string, T>,
  sizeOf: (value: T) => number,
): Generator<readonly (readonly [string, T])[]> {
  let part: (readonly [string, T])[] = [];
  let size = 0;
  for (const entry of entries) {
    part.push(entry);
    size += sizeOf(entry[1]);
    if (size < PART_CHARACTERS) continue;
    yield part;
    [part, size] = [[], 0];
  }
  if (part.length > 0) yield part;
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
  readonly #sources = new Map<string, FolderSource>();
  readonly #contents = new Map<string, Uint8Array>();

  add({ head, members, sources, contents }: FolderPart): void {
    if (head) this.#head = head;
    if (members) this.#addMembers(members);
    for (const [name, source] of sources ?? []) this.#sources.set(name, source);
    for (const [digest, content] of contents ?? []) this.#contents.set(digest, content);
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
    return { head: this.#head, lists: this.#lists, sources: this.#sources, contents: this.#contents };
  }
}
