/**
 * A document as it is kept for exports: JSON that stands alone. What it refers to in other files of its bundle is in an
 * extension of it, where references may lead.
 */
import { subtle } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { KeptDocument } from '../../model/imported-parts.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { SpecError } from './json.js';
import type { OtherFiles } from './other-files.js';

/** Most characters of the JSON: aliases of YAML can make much out of little. */
const MAX_LENGTH = 32 * 1024 * 1024;
const TOO_LONG = `it has more than ${MAX_LENGTH} characters`;

const compress = promisify(gzip);

/** A document that is not kept; the message says why. */
export class NotKept extends Error {
  override readonly name = 'NotKept';
}

/**
 * The document as it is stored.
 * @throws NotKept
 */
export async function keptDocument(document: JsonObject, files: OtherFiles): Promise<KeptDocument> {
  return keptJson(jsonOf(document, files));
}

/**
 * The same of the text of a document that stands alone. It is compressed here, which takes a third of the time that
 * PostgreSQL needs for it, and by other threads, while this one goes on with the document.
 * @throws NotKept
 */
export async function keptJson(json: string): Promise<KeptDocument> {
  if (json.length > MAX_LENGTH) throw new NotKept(TOO_LONG);
  const bytes = Buffer.from(json);
  const [digest, gzip] = await Promise.all([
    subtle.digest('SHA-256', bytes),
    compress(bytes, { level: constants.Z_BEST_SPEED }),
  ]);
  return { sha256: Buffer.from(digest).toString('hex'), gzip };
}

function jsonOf(document: JsonObject, files: OtherFiles): string {
  try {
    return JSON.stringify(new Collector(files, extensionName(document)).collect(document));
  } catch (thrown) {
    // A file that nothing has needed so far may be nested as deeply as it likes.
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new NotKept('it is nested too deeply');
  }
}

/** A name that the document does not have. */
function extensionName(document: JsonObject): string {
  let name = 'x-files';
  for (let count = 2; Object.hasOwn(document, name); count++) name = `x-files-${count}`;
  return name;
}

class Collector {
  readonly #files: OtherFiles;
  readonly #extension: string;
  /** Paths of files that are still to be copied, and of those that have been. */
  readonly #named = new Set<string>();
  /** JSON pointers of the anchors of files, by their names. */
  readonly #anchors = new Map<string, Map<string, string>>();
  #length = 0;

  constructor(files: OtherFiles, extension: string) {
    this.#files = files;
    this.#extension = extension;
  }

  collect(document: JsonObject): JsonObject {
    if (this.#files.areNone) {
      this.#measure(document);
      return document;
    }
    const own = this.#copy(document, '') as JsonObject;
    const tree: Tree = Object.create(null);
    // Copying one may add others.
    for (const path of this.#named) put(tree, path.split('/'), this.#copy(this.#contentOf(path), path));
    return this.#named.size === 0 ? own : { ...own, [this.#extension]: tree };
  }

  #contentOf(path: string): unknown {
    try {
      return this.#files.contentOf(path, '');
    } catch (thrown) {
      if (!(thrown instanceof SpecError)) throw thrown;
      return {};
    }
  }

  /** Counts as copying does. */
  #measure(value: unknown): void {
    this.#count(typeof value === 'string' ? value.length + 3 : 5);
    if (Array.isArray(value)) for (const item of value) this.#measure(item);
    else if (isObject(value))
      for (const key of Object.keys(value)) {
        this.#count(key.length + 3);
        this.#measure(value[key]);
      }
  }

  #copy(value: unknown, file: string): unknown {
    this.#count(typeof value === 'string' ? value.length + 3 : 5);
    if (Array.isArray(value)) return value.map((item) => this.#copy(item, file));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => {
        this.#count(key.length + 3);
        const isReference = key === '$ref' && typeof member === 'string';
        return [key, isReference ? this.#reference(member, file) : this.#copy(member, file)];
      }),
    );
  }

  /** A reference as the document itself writes it. */
  #reference(target: string, from: string): string {
    this.#count(target.length + 3);
    const to = this.#locate(target, from);
    if (to === undefined || (to === '' && from === '')) return target;
    const at = target.indexOf('#');
    const fragment = at < 0 ? '' : target.slice(at + 1);
    if (to === '') return `#${fragment}`;
    this.#named.add(to);
    const pointer = fragment === '' || fragment.startsWith('/') ? fragment : this.#anchorIn(to, fragment);
    const segments = to.split('/').map(encoded);
    return `#/${[this.#extension, ...segments].join('/')}${pointer}`;
  }

  /** The JSON pointer of an anchor: in one document, those of several files could be the same. */
  #anchorIn(file: string, name: string): string {
    const anchors = this.#anchors.get(file) ?? new Map<string, string>();
    if (!this.#anchors.has(file)) this.#findAnchors(this.#contentOf(file), '', anchors);
    this.#anchors.set(file, anchors);
    return anchors.get(name) ?? `/${encoded(name)}`;
  }

  #findAnchors(value: unknown, pointer: string, anchors: Map<string, string>): void {
    this.#count(1);
    if (typeof value !== 'object' || value === null) return;
    const { $anchor, $dynamicAnchor } = value as JsonObject;
    for (const name of [$anchor, $dynamicAnchor])
      if (typeof name === 'string' && !anchors.has(name)) anchors.set(name, pointer);
    for (const [key, member] of Object.entries(value))
      this.#findAnchors(member, `${pointer}/${encoded(key)}`, anchors);
  }

  /** Undefined for what the import cannot follow, either. */
  #locate(target: string, from: string): string | undefined {
    try {
      return this.#files.locate(from, target, '');
    } catch (thrown) {
      if (!(thrown instanceof SpecError)) throw thrown;
      return undefined;
    }
  }

  #count(length: number): void {
    this.#length += length;
    if (this.#length > MAX_LENGTH) throw new NotKept(TOO_LONG);
  }
}

/** A key as a part of a JSON pointer in a reference. */
function encoded(key: string): string {
  return encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** Without a prototype, so that no name means anything. */
interface Tree {
  [name: string]: unknown;
}

function put(tree: Tree, [name = '', ...others]: readonly string[], value: unknown): void {
  if (others.length === 0) {
    tree[name] = value;
    return;
  }
  const folder = (tree[name] ?? Object.create(null)) as Tree;
  tree[name] = folder;
  put(folder, others, value);
}
