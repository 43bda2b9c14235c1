/**
 * Who a request is from, where trusted proxies stand between the client and this server (`TRUSTED_PROXIES`). The
 * gateway has the same in Rust (`client_ip.rs`), which says why both headers are read from their ends.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Who sent a request, and by which protocol, as far as it is known. */
export interface Client {
  /** An IPv4 address that is mapped to IPv6 is given as IPv4. */
  readonly address: string;
  readonly scheme: Scheme;
}

type Scheme = 'http' | 'https';
type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** What a proxy says about where it got the request from; an address is undefined when it is unknown, or hidden. */
interface Hop {
  readonly address: IpAddress | undefined;
  readonly scheme?: Scheme | undefined;
}

/** The proxies whose headers about clients are believed. */
export class TrustedProxies {
  readonly #networks: readonly (readonly [IpAddress, number])[];

  /** @param networks in their notation, such as `10.0.0.0/8` */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map(readNetwork);
  }

  /**
   * Who a request is from. The headers are not looked at unless the peer is a trusted proxy.
   * @param peer undefined when the connection is closed already
   * @param rawHeaders alternating names and values
   */
  clientOf(peer: string | undefined, rawHeaders: readonly string[]): Client {
    const from = readIp(peer ?? '');
    if (!from) return { address: peer ?? 'unknown', scheme: 'http' };
    if (!this.#trusts(from)) return { address: from.toString(), scheme: 'http' };
    const of = (name: string) =>
      rawHeaders.filter((_value, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
    const addresses = of('x-forwarded-for');
    const client =
      addresses.length > 0
        ? this.#walk(from, elements(addresses), (text) => ({ address: readAddress(text) }))
        : this.#walk(from, elements(of('forwarded')), readForwarded);
    // A proxy that adds to this list does so with each request, like to the other: what it says about the client is as
    // far from the end. Most proxies replace the list instead, and it has one value.
    const schemes = [...elements(of('x-forwarded-proto'))].slice(0, client.hop + 1);
    const scheme = client.scheme ?? readScheme(schemes.at(-1) ?? '') ?? 'http';
    return { address: client.address.toString(), scheme };
  }

  /** Follows hops from here towards the client, to the first that no trusted proxy has added. */
  #walk(peer: IpAddress, texts: Iterable<string>, read: (text: string) => Hop) {
    let client = { address: peer, hop: 0, scheme: undefined as Scheme | undefined };
    let at = 0;
    for (const text of texts) {
      const { address, scheme } = read(text);
      client = { address: address ?? client.address, hop: at++, scheme };
      if (!address || !this.#trusts(address)) break;
    }
    return client;
  }

  #trusts(address: IpAddress): boolean {
    return this.#networks.some(
      ([network, length]) => network.kind() === address.kind() && address.match(network as never, length),
    );
  }
}

function readNetwork(text: string): readonly [IpAddress, number] {
  const [address = '', prefix] = text.split('/');
  const [network, length] = ipaddr.parseCIDR(`${canonical(address)}/${prefix}`);
  const isMapped = network.kind() === 'ipv6' && (network as ipaddr.IPv6).isIPv4MappedAddress();
  return isMapped && length >= 96
    ? [(network as ipaddr.IPv6).toIPv4Address(), length - 96]
    : [network, length];
}

/** The elements of a list in several headers, the last one first. */
function* elements(values: readonly string[]): Generator<string> {
  for (const value of values.toReversed()) yield* parts(value, ',');
}

/**
 * The parts of a text between delimiters that are not within quotes, the last one first: a client may have sent quotes
 * at the beginning that do not match.
 */
function* parts(text: string, delimiter: string): Generator<string> {
  let end = text.length;
  let isQuoted = false;
  for (let at = text.length - 1; at >= -1; at--) {
    if (text[at] === '"') {
      let escapes = 0;
      while (text[at - 1 - escapes] === '\\') escapes++;
      if (escapes % 2 === 0) isQuoted = !isQuoted;
      at -= escapes;
    } else if (at === -1 || (text[at] === delimiter && !isQuoted)) {
      const part = trimmed(text.slice(at + 1, end));
      if (part !== '') yield part;
      end = at;
    }
  }
}

/** Without white space of ASCII: other bytes are part of what a client sent. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && ' \t\r\n\f'.includes(text[start] ?? '')) start++;
  while (end > start && ' \t\r\n\f'.includes(text[end - 1] ?? '')) end--;
  return text.slice(start, end);
}

/** Reads an element of `Forwarded`: `for="[2001:db8::1]:4711";proto=https;by=_gateway`. */
function readForwarded(element: string): Hop {
  let hop: Hop = { address: undefined };
  for (const pair of parts(element, ';')) {
    const at = pair.indexOf('=');
    const name = trimmed(pair.slice(0, Math.max(at, 0))).toLowerCase();
    const value = unquoted(trimmed(pair.slice(at + 1)));
    if (name === 'for') hop = { ...hop, address: readAddress(value) };
    else if (name === 'proto') hop = { ...hop, scheme: readScheme(value) };
  }
  return hop;
}

function unquoted(value: string): string {
  const isQuoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"');
  return isQuoted ? value.slice(1, -1).replace(/\\(.)/gs, '$1') : value;
}

/** Reads an address, perhaps with a port, which may be hidden: `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:_a`. */
function readAddress(text: string): IpAddress | undefined {
  const alone = readIp(text);
  if (alone) return alone;
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:[\]]*)(?=:))(?::[A-Za-z0-9._-]*)?$/.exec(text) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? readIp(bracketed) : undefined;
  return plain !== undefined && isIP(plain) === 4 ? readIp(plain) : undefined;
}

/** Zones are of this machine alone. */
function readIp(text: string): IpAddress | undefined {
  return isIP(text) === 0 || text.includes('%') ? undefined : ipaddr.process(canonical(text));
}

/** `ipaddr.js` reads `::192.0.2.1` as if it were `::ffff:192.0.2.1`. */
function canonical(address: string): string {
  return isIP(address) === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

function readScheme(text: string): Scheme | undefined {
  const scheme = text.toLowerCase();
  return scheme === 'http' || scheme === 'https' ? scheme : undefined;
}
