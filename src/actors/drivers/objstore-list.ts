/**
 * Reads pages of object lists. The client library would do it, but takes a key such as `007` for a number.
 */
import type { ObjectInfo } from '../driver.js';

/** One page of a list of objects. */
export interface ListPage {
  readonly objects: readonly ObjectInfo[];
  /** Asks for the next page; undefined on the last. */
  readonly next: string | undefined;
}

/** The query of the page of at most `limit` objects (1000 is what servers allow), or of the one after `token`. */
export function listQuery(prefix: string, limit: number, token: string | undefined): string {
  const parameters: [string, string][] = [
    ...(token === undefined ? [] : [['continuation-token', token] as [string, string]]),
    // XML cannot hold all characters that a key may have.
    ['encoding-type', 'url'],
    ['list-type', '2'],
    ['max-keys', String(Math.min(limit, 1000))],
    ['prefix', prefix],
  ];
  return parameters.map(([name, value]) => `${name}=${escapeQuery(value)}`).join('&');
}

/** Reads the answer to `listQuery`. The elements it looks for hold text only, and never themselves. */
export function readListPage(xml: string): ListPage {
  const isEncoded = textOf(xml, 'EncodingType') === 'url';
  const objects = contentsOf(xml).map((content) => {
    const key = textOf(content, 'Key') ?? '';
    return {
      key: isEncoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key,
      size: Number(textOf(content, 'Size') ?? 0),
      last_modified: new Date(textOf(content, 'LastModified') ?? 0),
      etag: unquote(textOf(content, 'ETag') ?? ''),
    };
  });
  const isTruncated = textOf(xml, 'IsTruncated') === 'true';
  return { objects, next: isTruncated ? textOf(xml, 'NextContinuationToken') : undefined };
}

function contentsOf(xml: string): string[] {
  const contents: string[] = [];
  for (let end = 0; ; ) {
    const start = xml.indexOf('<Contents>', end);
    end = xml.indexOf('</Contents>', start);
    if (start === -1 || end === -1) return contents;
    contents.push(xml.slice(start, end));
  }
}

/** An entity tag without its quotes. */
export function unquote(etag: string): string {
  return etag.replace(/^"|"$/g, '');
}

/** As requests are signed: everything but letters, digits and `-_.~` is escaped. */
export function escapeQuery(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function textOf(xml: string, element: string): string | undefined {
  const match = new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml);
  return match ? decodeEntities(match[1] ?? '') : undefined;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** The text that stands in XML. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#([0-9]+)|([a-z]+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return ENTITIES[name] ?? whole;
  });
}
