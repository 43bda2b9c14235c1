/**
 * Merges the YAML files of a folder: those that list objects, then an overlay, which changes objects of the same
 * natural key as a JSON Merge Patch (RFC 7396) does. Remembers where each object and each of its members stands.
 */
import { isObject, type JsonObject } from '../../util/json-object.js';
import { folderError } from './errors.js';
import type { FolderDocument, ValueAtLine } from './folder.js';

/** A parsed file. */
export interface ParsedFile {
  readonly name: string;
  readonly value: unknown;
  /** The line of the value at a path of keys. */
  lineOf(path: readonly string[]): number;
}

/** Lists of objects, and the members that are the natural key of each; of an endpoint one of several. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  domains: ['host'],
  collections: ['host', 'name'],
  endpoints: ['host', 'method', 'route', 'collection', 'collection_host', 'path'],
  services: ['name'],
};

interface Item extends ValueAtLine {
  value: unknown;
  place: string;
  members: Record<string, string>;
}

/** @throws AppError invalid_folder */
export function mergedFiles(files: readonly ParsedFile[], overlay: ParsedFile | undefined): FolderDocument {
  const head = new Map<string, { readonly value: unknown; readonly file: string; readonly place: string }>();
  const lists = new Map<string, Item[]>(Object.keys(KEYS).map((name) => [name, []]));
  for (const file of files) {
    for (const [name, value] of Object.entries(mapOf(file))) {
      const place = placeOf(file, [name]);
      const list = lists.get(name);
      if (list) {
        list.push(...itemsOf(file, name, value));
      } else if (name === 'secrets' && Array.isArray(value)) {
        const known = head.get(name)?.value;
        head.set(name, { value: [...(Array.isArray(known) ? known : []), ...value], file: file.name, place });
      } else {
        const before = head.get(name);
        if (before && before.value !== value)
          throw folderError([`${place}: ${name} is given with another value at ${before.place}`]);
        head.set(name, { value, file: file.name, place });
      }
    }
  }
  if (overlay) applyOverlay(overlay, head, lists);
  return {
    head: [...head].map(([name, { value, place }]) => ({ name, value, place })),
    lists: Object.fromEntries(lists),
  };
}

function applyOverlay(
  file: ParsedFile,
  head: Map<string, { readonly value: unknown; readonly file: string; readonly place: string }>,
  lists: ReadonlyMap<string, Item[]>,
): void {
  for (const [name, value] of Object.entries(mapOf(file))) {
    const list = lists.get(name);
    if (!list) {
      if (value === null) head.delete(name);
      else head.set(name, { value, file: file.name, place: placeOf(file, [name]) });
      continue;
    }
    const byKey = new Map(list.map((item) => [naturalKey(name, item.value), item]));
    for (const item of itemsOf(file, name, value)) {
      const before = byKey.get(naturalKey(name, item.value));
      if (!before || !isObject(before.value) || !isObject(item.value)) {
        list.push({ ...item, value: withoutNulls(item.value) });
        continue;
      }
      before.value = patched(before.value, item.value);
      Object.assign(before.members, item.members);
    }
  }
}

/** RFC 7396: maps are merged, null removes a member, all else is replaced. */
function patched(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name);
    else result.set(name, patched(result.get(name), value));
  }
  return Object.fromEntries(result);
}

function withoutNulls(value: unknown): unknown {
  return isObject(value) ? patched({}, value) : value;
}

/** The values of the members that make an object the same one, as a JSON list. */
function naturalKey(list: string, value: unknown): string {
  const members = isObject(value) ? value : {};
  return JSON.stringify(
    (KEYS[list] ?? []).map((name) => {
      const member = Object.hasOwn(members, name) ? members[name] : undefined;
      return name === 'host' && typeof member === 'string' ? member.toLowerCase() : (member ?? null);
    }),
  );
}

function itemsOf(file: ParsedFile, name: string, value: unknown): Item[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw folderError([`${placeOf(file, [name])}: ${name}: must be a list`]);
  return value.map((item: unknown, at) => {
    const path = [name, String(at)];
    const names = isObject(item) ? Object.keys(item) : [];
    return {
      value: item,
      place: placeOf(file, path),
      members: Object.fromEntries(names.map((member) => [member, placeOf(file, [...path, member])])),
    };
  });
}

function mapOf(file: ParsedFile): JsonObject {
  const { value } = file;
  if (value === undefined || value === null) return {};
  if (isObject(value)) return value;
  throw folderError([`${file.name}: must be a map with members such as stack, domains and endpoints`]);
}

function placeOf(file: ParsedFile, path: readonly string[]): string {
  return `${file.name}:${file.lineOf(path)}`;
}
