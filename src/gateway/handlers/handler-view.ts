/** The files of this machine that a handler sees: its executable, the actor host's socket, and system files. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Mount } from '../../contracts/launcher.js';
import type { View } from '../../sandbox/confinement.js';

/** Paths of one handler on this machine. */
export interface HandlerPaths {
  readonly executable: string;
  /** The actor host's socket, in a folder without anything else. */
  readonly servicesSocket: string;
}

/** `none`: no network except services. */
export type HandlerNetwork = 'none' | 'host';

/** Size of its /tmp, MiB, in memory; without one of its own, of the folder that it may write to. */
export const TMP_MB = 64;
/** The local time zone. */
const ALWAYS = ['/etc/localtime'];
/** Files for name resolution and certificate checks. Without folders that may contain private keys. */
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
    changesAttributes: false,
  };
}
