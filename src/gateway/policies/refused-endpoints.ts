/**
 * Endpoints whose policies their domain had no room for. Nobody keeps what they wanted: when there is other room, they
 * are read again, some at a time, until all have been tried.
 */

/** So many endpoints of a domain are being read again at a time. */
const READ_AGAIN = 100;

interface DomainRefusals {
  /** Those first that were refused first. */
  readonly ids: Set<string>;
  /** Those that are still to be read again. */
  untried: Set<string>;
  /** Those that are being read. */
  readonly rereading: Set<string>;
}

export class RefusedEndpoints {
  readonly #domains = new Map<string, DomainRefusals>();
  readonly #readAgain: (endpointId: string) => void;

  constructor(readAgain: (endpointId: string) => void) {
    this.#readAgain = readAgain;
  }

  has(domain: string, id: string): boolean {
    return this.#domains.get(domain)?.ids.has(id) === true;
  }

  add(domain: string, id: string): void {
    const refused = this.#domains.get(domain) ?? { ids: new Set(), untried: new Set(), rereading: new Set() };
    refused.ids.add(id);
    this.#domains.set(domain, refused);
  }

  /** It is tried, or has no policies there any more. */
  remove(domain: string, id: string): void {
    const refused = this.#domains.get(domain);
    if (!refused) return;
    for (const set of [refused.ids, refused.untried, refused.rereading]) set.delete(id);
    if (refused.ids.size === 0) this.#domains.delete(domain);
  }

  /** There may be room now. @param tried those that have been tried with it */
  tryAgain(domain: string, tried: ReadonlySet<string>): void {
    const refused = this.#domains.get(domain);
    if (!refused) return;
    const { ids, rereading } = refused;
    refused.untried = new Set([...ids].filter((id) => !rereading.has(id) && !tried.has(id)));
    this.readNext(domain);
  }

  /** Reads further ones in place of those that have been tried. */
  readNext(domain: string): void {
    const refused = this.#domains.get(domain);
    if (!refused) return;
    const { untried, rereading } = refused;
    const next = [...untried].slice(0, Math.max(0, READ_AGAIN - rereading.size));
    for (const id of next) {
      untried.delete(id);
      rereading.add(id);
    }
    for (const id of next) this.#readAgain(id);
  }
}
