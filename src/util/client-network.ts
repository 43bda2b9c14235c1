/** How clients are told apart when they are counted: by the network of their address. */
import ipaddr from 'ipaddr.js';

/** Whoever has an address of IPv6 has very many: those of a network of 64 bits are one, as in the front. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' ? parsed.toString() : parsed.toByteArray().slice(0, 8).join('.');
}
