/** The other files of a document's bundle, to which its references may lead. Nothing is fetched or read from disk. */
import { posix } from 'node:path';
import { AppError } from '../../errors.js';
import { isObject } from '../../util/json-object.js';
import type { Warn } from '../warnings.js';
import { shortened, specError } from './json.js';
import { parseText, repeatedKeyText } from './parse-text.js';

/** What is beside a document. */
export interface Bundle {
  /** Path of the document. */
  readonly document: string;
  /** The text of another file; undefined when there is none. Rejects with an AppError when it cannot be read. */
  readonly readText: (path: string) => Promise<string> | undefined;
}

/** Why a file cannot be read. */
class BrokenFile {
  constructor(readonly reason: string) {}
}

const URL_REFERENCE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;

export class OtherFiles {
  /** Null for a document that came by itself. */
  readonly #document: string | null;
  /** The contents of files, or why they cannot be read. */
  readonly #files = new Map<string, unknown>();

  private constructor(document: string | null) {
    this.#document = document;
  }

  /** Parses all files to which something leads that looks like a reference. */
  static async load(root: unknown, warn: Warn, bundle?: Bundle): Promise<OtherFiles> {
    const others = new OtherFiles(bundle?.document ?? null);
    const pending = bundle ? [{ content: root, file: '' }] : [];
    for (const { content, file } of pending) {
      for (const name of filesNamedIn(content)) {
        const path = others.#pathOf(file, name);
        if (path === undefined || path === bundle?.document || others.#files.has(path)) continue;
        const text = bundle?.readText(path);
        if (text === undefined) continue;
        const parsed = await text
          .then((content) => {
            const { value, repeatedKeys } = parseText(content);
            for (const key of repeatedKeys) warn('flaws', `${path}, ${repeatedKeyText(key)}`);
            return value;
          })
          .catch((thrown: unknown) => brokenFile(path, thrown));
        others.#files.set(path, parsed);
        pending.push({ content: parsed, file: path });
      }
    }
    return others;
  }

  /** The document came by itself: no reference leads to another file. */
  get areNone(): boolean {
    return this.#document === null;
  }

  /**
   * The path of the file to which a reference leads; empty for the document itself.
   * @param from path of the file with the reference; empty for the document itself
   * @throws SpecError when it is not a file of the bundle
   */
  locate(from: string, target: string, location: string): string {
    const name = fileNameIn(target);
    if (name === '') return from;
    const fail = (reason: string) => specError(location, `$ref "${shortened(target)}" ${reason}`);
    if (URL_REFERENCE.test(name))
      throw fail('is a URL, and nothing is fetched: put its target into the document');
    const path = this.#pathOf(from, name);
    if (path === undefined) throw fail('leads out of the bundle, and nothing else is read');
    if (this.#document === null) {
      throw fail(
        'is in another file, which is not sent along: import a ZIP bundle of all files of the document',
      );
    }
    if (path === this.#document) return '';
    if (!this.#files.has(path)) throw fail('names a file that is not in the bundle');
    return path;
  }

  /** A reference of another file, as the document itself would write it. */
  fromDocument(from: string, target: string): string {
    const name = fileNameIn(target);
    const path = name === '' ? from : this.#pathOf(from, name);
    if (path === undefined || this.#document === null) return target;
    const relative = posix.relative(posix.dirname(this.#document), path);
    return `${encodeURI(relative)}${target.slice(name.length)}`;
  }

  /** The content of a file that `locate` has found. @throws SpecError when it cannot be read */
  contentOf(path: string, location: string): unknown {
    const content = this.#files.get(path);
    if (content instanceof BrokenFile) throw specError(location, content.reason);
    return content;
  }

  /** Undefined for a path out of the bundle, and for a URL. */
  #pathOf(from: string, name: string): string | undefined {
    const path = decoded(name).replaceAll('\\', '/').normalize('NFC');
    if (URL_REFERENCE.test(name) || path.startsWith('/')) return undefined;
    const folder = posix.dirname(from === '' ? (this.#document ?? '') : from);
    const joined = posix.join(folder, path);
    return joined === '..' || joined.startsWith('../') ? undefined : joined;
  }
}

/** The files of all references in a value, and of what only looks like one. */
function filesNamedIn(root: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  const seen = new Set<unknown>();
  const pending = [root];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    const target = isObject(value) ? value['$ref'] : undefined;
    const name = typeof target === 'string' ? fileNameIn(target) : '';
    if (name !== '') names.add(name);
    for (const member of Object.values(value)) pending.push(member);
  }
  return names;
}

/** Empty for a reference within its file. */
function fileNameIn(target: string): string {
  return target.split('#', 1)[0] ?? '';
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function brokenFile(path: string, thrown: unknown): BrokenFile {
  if (!(thrown instanceof AppError)) throw thrown;
  const { message } = thrown;
  // An archive names its file.
  return new BrokenFile(message.startsWith(path) ? message : `${shortened(path)}: ${message}`);
}
