/** What a browser does with cookies and redirects, for tests that follow a person from one server to another. */
import { createClient, type HttpResponse } from './client.js';

interface Cookie {
  readonly value: string;
  /** The beginning of the paths to which it is sent. */
  readonly path: string;
  /** Not sent when another site leads here. */
  readonly isStrict: boolean;
}

export class Browser {
  /** By server and name. */
  readonly #cookies = new Map<string, Map<string, Cookie>>();

  /** Opens an address, as a person who follows a link of another site does. Redirects are not followed. */
  async open(address: string, headers: Readonly<Record<string, string>> = {}): Promise<HttpResponse> {
    const url = new URL(address);
    const isForeign = (headers['sec-fetch-site'] ?? 'cross-site') === 'cross-site';
    const cookie = this.#cookiesFor(url, isForeign);
    const response = await createClient(url.origin).get(url.pathname + url.search, {
      headers: {
        ...{ accept: 'text/html', 'sec-fetch-site': 'cross-site' },
        ...{ 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
        ...(cookie !== '' && { cookie }),
        ...headers,
      },
    });
    for (const text of response.headers['set-cookie'] ?? []) this.#keep(url, text);
    return response;
  }

  /** Follows redirects until an address begins so. @returns the address, which is not opened */
  async follow(from: string, until: string): Promise<string> {
    let address = from;
    for (let hops = 0; hops < 10; hops++) {
      if (address.startsWith(until)) return address;
      const { status, headers, body } = await this.open(address);
      if (!headers.location) throw new Error(`${address} answers ${status}: ${JSON.stringify(body)}`);
      address = new URL(headers.location, address).href;
    }
    throw new Error(`${from} leads nowhere`);
  }

  /** The headers with the cookies for an address. */
  headersFor(address: string): Record<string, string> {
    const cookie = this.#cookiesFor(new URL(address));
    return cookie === '' ? {} : { cookie };
  }

  /** Another browser with the same cookies. */
  copy(): Browser {
    const copy = new Browser();
    for (const [origin, jar] of this.#cookies) copy.#cookies.set(origin, new Map(jar));
    return copy;
  }

  /** Changes the value of a cookie. */
  tamper(address: string, name: string, change: (value: string) => string): void {
    const jar = this.#cookies.get(new URL(address).origin);
    const cookie = jar?.get(name);
    if (!cookie) throw new Error(`There is no cookie ${name}`);
    jar?.set(name, { ...cookie, value: change(cookie.value) });
  }

  #cookiesFor({ origin, pathname }: URL, isForeign = false): string {
    const jar = [...(this.#cookies.get(origin) ?? [])];
    return jar
      .filter(([, { path, isStrict }]) => pathname.startsWith(path) && !(isStrict && isForeign))
      .map(([name, { value }]) => `${name}=${value}`)
      .join('; ');
  }

  #keep({ origin }: URL, text: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(text) ?? [];
    const path = /; *path=([^;]+)/i.exec(text)?.[1] ?? '/';
    const isStrict = /; *samesite=strict/i.test(text);
    const jar = this.#cookies.get(origin) ?? new Map<string, Cookie>();
    if (value === '' || /max-age=0/i.test(text)) jar.delete(name);
    else jar.set(name, { value, path, isStrict });
    this.#cookies.set(origin, jar);
  }
}
