/** Readable paths of handlers in a folder: `api.example.com/shop/getPet.rs`. */
import type { EndpointObject } from '../../apply/objects.js';

const MAX_PART = 80;
/** The folder of the host `*`, which is no name of a folder everywhere. */
const ALL_HOSTS = 'all-hosts';
/** Names that Windows keeps for devices. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)$/i;

export class SourcePaths {
  /** Paths in lower case: file systems may ignore case. */
  readonly #used = new Set<string>();
  /** The number to try next for a path that another endpoint has. */
  readonly #next = new Map<string, number>();

  /** A path that no other endpoint has; the same ones for the same endpoints in the same order. */
  pathOf({ host, collection, name, method, route }: EndpointObject): string {
    const folder = [
      host === '*' ? ALL_HOSTS : partOf(host),
      ...(collection === null ? [] : [partOf(collection)]),
    ];
    const base = partOf(name === `${method} ${route}` ? `${method}${route}` : name);
    const first = [...folder, base].join('/');
    for (let number = this.#next.get(first.toLowerCase()) ?? 1; ; number++) {
      const path = `${number === 1 ? first : `${first}-${number}`}.rs`;
      if (this.#used.has(path.toLowerCase())) continue;
      this.#next.set(first.toLowerCase(), number + 1);
      this.#used.add(path.toLowerCase());
      return path;
    }
  }
}

/** A name as a part of a path, in ASCII. */
function partOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '_')
    .replaceAll(/^[._]+|[._]+$/g, '')
    .slice(0, MAX_PART);
  if (plain === '') return 'handler';
  return RESERVED.test(plain.split('.', 1)[0] ?? '') ? `_${plain}` : plain;
}
