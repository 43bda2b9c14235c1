/** Where a request of a handler may go: below the base URL, or to another host that the config allows. */
import { parseBaseUrl, parseHost } from '../../../model/http-service.js';
import type { ServiceConfig } from '../../../model/service-configs.js';
import { invalid } from '../../operations.js';
import { ServiceError } from '../../service-error.js';

const ANY_SLASH = /\/|\\|%2f|%5c/i;
const TWO_DOTS = /^(?:\.|%2e){2}$/i;

export interface Target {
  readonly url: URL;
  /** Whether it is the server of the base URL, which gets the headers of the config. */
  readonly isBase: boolean;
}

export class Targets {
  readonly base: URL;
  readonly #hosts: ReadonlySet<string>;

  /** @throws ServiceError for a config that was stored before its rules */
  constructor({ base_url, hosts = [] }: ServiceConfig<'http'>) {
    const base = parseBaseUrl(base_url);
    if (typeof base === 'string') throw new ServiceError('unavailable', `base_url: ${base}`);
    this.base = base;
    this.#hosts = new Set(hosts.flatMap((host) => parseHost(host, base.protocol) ?? []));
  }

  /**
   * @param path of a request, with its query: `/v1/pets?limit=5`, or a whole URL
   * @throws ServiceError `invalid` when it does not stay where it may go
   */
  find(path: string): Target {
    return path.startsWith('/') ? this.#below(path) : this.#elsewhere(path);
  }

  /** The texts are joined, not resolved: `//host` and `@host` would be another host then. */
  #below(path: string): Target {
    const prefix = this.base.pathname.replace(/\/$/, '');
    return this.#requireBelow(parse(`${this.base.origin}${prefix}${path}`));
  }

  /**
   * The parser has resolved dot segments, also those that are escaped, but not those between escaped slashes, which
   * many servers resolve.
   */
  #requireBelow(url: URL): Target {
    const prefix = this.base.pathname.replace(/\/?$/, '/');
    const isAbove = prefix !== '/' && url.pathname.split(ANY_SLASH).some((segment) => TWO_DOTS.test(segment));
    if (url.origin !== this.base.origin || !url.pathname.startsWith(prefix) || isAbove) {
      throw invalid('args.path', `must stay below ${this.base.href}`);
    }
    return { url, isBase: true };
  }

  #elsewhere(text: string): Target {
    const url = parse(text);
    if (url.username || url.password) throw invalid('args.path', 'must have no user and no password');
    if (url.origin === this.base.origin) return this.#requireBelow(url);
    if (url.protocol !== this.base.protocol || !this.#hosts.has(url.host)) {
      const allowed = [this.base.host, ...this.#hosts].map((host) => `${this.base.protocol}//${host}`);
      throw invalid(
        'args.path',
        `"${url.origin}" is not allowed; the config of the service allows ${allowed.join(', ')}`,
      );
    }
    return { url, isBase: false };
  }
}

function parse(text: string): URL {
  if (!URL.canParse(text)) throw invalid('args.path', 'must begin with a slash, or be a whole URL');
  return new URL(text);
}
