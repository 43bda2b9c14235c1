/**
 * Addresses that a webhook may be sent to: those of the internet. Whoever may create an alert must not thereby reach
 * what this machine can reach: its own ports, its network, the metadata of a cloud.
 */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** A host has an address that is not one of the internet. */
export class PrivateAddressError extends Error {
  override readonly name = 'PrivateAddressError';

  constructor(address: string) {
    super(`${address} is not an address of the internet; ALLOW_PRIVATE_URLS allows it`);
  }
}

/** False for loopback, private, link-local, carrier-grade, multicast, documentation and all other special addresses. */
export function isPublicAddress(address: string): boolean {
  // `process`: an IPv4 address in IPv6 notation is judged as what it is.
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast';
}

/** IPv6 addresses have brackets in a URL. @throws PrivateAddressError when the host is a private address itself */
export function requirePublicHost({ hostname }: URL): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !isPublicAddress(host)) throw new PrivateAddressError(host);
}

/**
 * Resolves a host for a connection, and fails when one of its addresses is private. Checked here, and not before: a
 * name can get another address in between.
 */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true } as LookupOptions & { all: true }, (error, addresses) => {
    const found: readonly LookupAddress[] = addresses ?? [];
    const refused = found.find(({ address }) => !isPublicAddress(address));
    const [first] = found;
    if (error || !first) callback(error ?? new Error(`${hostname} has no address`), '', 0);
    else if (refused) callback(new PrivateAddressError(refused.address), '', 0);
    else if (options.all) callback(null, [...found]);
    else callback(null, first.address, first.family);
  });
};
