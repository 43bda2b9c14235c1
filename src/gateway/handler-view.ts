/** What a handler sees of this machine: its executable, the actor host's socket, and what programs need. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Mount, View } from '../sandbox/confinement.js';

/** What one handler needs. */
export interface HandlerPaths {
  readonly executable: string;
  /** The actor host's socket, in a folder without anything else. */
  readonly servicesSocket: string;
}

/** `none`: no network at all, services excepted. */
export type HandlerNetwork = 'none' | 'host';

/** Room for its temporary files, which are memory, MiB. */
const TMP_MB = 64;
/** For programs that tell the time of day. */
const ALWAYS = ['/etc/localtime'];
/** For programs that look up names and check certificates. No folders that may hold private keys. */
const FOR_NETWORK = [
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/host.conf',
  '/etc/gai.conf',
  '/etc/services',
  '/etc/ssl/certs',
  '/etc/ssl/cert.pem',
  '/etc/ssl/openssl.cnf',
  '/etc/pki/tls/certs',
  '/etc/pki/ca-trust',
];

export function viewOf({ executable, servicesSocket }: HandlerPaths, network: HandlerNetwork): View {
  const system = [...ALWAYS, ...(network === 'host' ? FOR_NETWORK : [])].filter((path) => existsSync(path));
  return {
    readOnly: [
      [executable, '/handler'],
      [dirname(servicesSocket), '/run/services'],
      ...system.map((path): Mount => [path, path]),
    ],
    writable: [],
    network: network === 'host',
    tmpMb: TMP_MB,
  };
}
