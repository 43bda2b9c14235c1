/**
 * Addresses of the internet, as opposed to those that only this machine can reach: its own ports, its network, the
 * metadata of a cloud. Who chooses where this machine sends requests must not thereby reach these.
 */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/** A host has an address that is not one of the internet. */
export class PrivateAddressError extends Error {
  override readonly name = 'PrivateAddressError';

  constructor(readonly address: string) {
    super(`${address} is not an address of the internet`);
  }
}

/** IPv4 addresses as IPv6 had them once (RFC 4291, section 2.5.5.1). */
const IPV4_COMPATIBLE = ipaddr.IPv6.parseCIDR('::/96');

/**
 * False for loopback, private, link-local, carrier-grade, multicast, documentation and all other special addresses,
 * for those of this machine, and for its neighbours.
 */
export function isPublicAddress(address: string, own: readonly OwnAddress[] = ownAddresses()): boolean {
  if (!ipaddr.isValid(address)) return false;
  // `process`: an IPv4 address in IPv6 notation is judged as what it is.
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast' || isWithin(parsed, IPV4_COMPATIBLE)) return false;
  return !own.some(({ address: mine, cidr }) =>
    [`${mine}/${ipaddr.parse(mine).kind() === 'ipv4' ? 32 : 128}`, cidr].some(
      (network) => network !== null && isWithin(parsed, networkOf(network)),
    ),
  );
}

/** An address of this machine, and the network that it is in. */
export type OwnAddress = Pick<NetworkInterfaceInfo, 'address' | 'cidr'>;

function ownAddresses(): OwnAddress[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
}

type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** The network of a CIDR; undefined for one of all addresses, where nobody is a neighbour. */
function networkOf(cidr: string): Network | undefined {
  const [address, bits] = ipaddr.parseCIDR(cidr);
  return bits === 0 ? undefined : [address, bits];
}

function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, network: Network | undefined): boolean {
  return (
    network !== undefined && address.kind() === network[0].kind() && address.match([...network] as never)
  );
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
    const all: readonly LookupAddress[] = addresses ?? [];
    const refused = all.find(({ address }) => !isPublicAddress(address));
    const [first] = all;
    if (error || !first) callback(error ?? new Error(`${hostname} has no address`), '', 0);
    else if (refused) callback(new PrivateAddressError(refused.address), '', 0);
    else if (options.all) callback(null, [...all]);
    else callback(null, first.address, first.family);
  });
};
