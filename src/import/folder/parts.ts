/** A folder in parts that are small enough for messages: receiving one blocks the event loop for a millisecond. */
import type { Folder, FolderDocument, ValueAtLine } from './folder.js';

/** All of them together are the whole. */
export interface FolderPart extends Partial<FolderDocument> {
  readonly sources?: readonly (readonly [path: string, code: string])[];
}

const PART_OBJECTS = 100;
const PART_CHARACTERS = 256 * 1024;

export function* partsOf({ head, lists, sources }: Folder): Generator<FolderPart> {
  yield { head };
  for (const [name, items] of Object.entries(lists))
    for (let at = 0; at < items.length; at += PART_OBJECTS)
      yield { lists: { [name]: items.slice(at, at + PART_OBJECTS) } };
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

/** Puts the parts together again. */
export class FolderParts {
  #head: FolderDocument['head'] = [];
  readonly #lists: Record<string, ValueAtLine[]> = {};
  readonly #sources = new Map<string, string>();

  add({ head, lists, sources }: FolderPart): void {
    if (head) this.#head = head;
    for (const [name, items] of Object.entries(lists ?? {})) {
      const list = this.#lists[name] ?? [];
      list.push(...items);
      this.#lists[name] = list;
    }
    for (const [path, code] of sources ?? []) this.#sources.set(path, code);
  }

  folder(): Folder {
    return { head: this.#head, lists: this.#lists, sources: this.#sources };
  }
}
