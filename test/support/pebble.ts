/**
 * Pebble, the ACME server that is made for tests: it checks what Let's Encrypt checks. A DNS server of its own leads
 * all names to 127.0.0.1.
 */
import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { makeCertificates } from './certificates.js';
import { freePort } from './ports.js';
import { SERVER_CACHE } from './server-cache.js';
import { serverProcess } from './server-process.js';
import { tempDir } from './temp.js';

/** `scripts/test-servers.mjs` builds them under these names. */
const PEBBLE = join(SERVER_CACHE, 'pebble-v2.10.3');
const DNS = join(SERVER_CACHE, 'pebble-challtestsrv-v2.10.3');

const DAY = 24 * 3600;

export interface PebbleOptions {
  /** Of the certificates that it issues, seconds; 90 days unless given. */
  readonly validitySeconds?: number;
}

export interface Pebble {
  readonly directory: string;
  /** The authority of its own web server: a file for `NODE_EXTRA_CA_CERTS`. */
  readonly caFile: string;
  /** Starts it, or starts it anew: it has forgotten all accounts and orders, and has another root. */
  start(ports: { readonly http: number; readonly tls: number }, options?: PebbleOptions): Promise<void>;
  /** The root of the certificates that it issues; PEM. */
  root(): Promise<string>;
  /** Where it looks for a host; null: at 127.0.0.1 again. */
  setAddress(host: string, address: string | null): Promise<void>;
  remove(): Promise<void>;
}

/** Chooses its ports; it is started later, when those are known that it asks. */
export async function preparePebble(): Promise<Pebble> {
  const folder = await tempDir('pebble');
  const [port, management, dns, dnsManagement] = [
    ...[await freePort(), await freePort()],
    ...[await freePort(), await freePort()],
  ] as [number, number, number, number];
  const { ca, cert, key } = await makeCertificates(folder.path, ['127.0.0.1', 'localhost']);
  const config = join(folder.path, 'config.json');
  const env = {
    PEBBLE_VA_NOSLEEP: '1',
    // Every order has challenges, and some requests are refused as if they were played again (in percent): not many,
    // as the sixth refusal in a row fails an order.
    PEBBLE_AUTHZREUSE: '0',
    PEBBLE_WFE_NONCEREJECT: '5',
  };
  const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', ''];
  const names = serverProcess(
    DNS,
    [
      ...['-dnsserver', `127.0.0.1:${dns}`, '-management', `127.0.0.1:${dnsManagement}`],
      ...['-defaultIPv4', '127.0.0.1', '-defaultIPv6', ''],
      ...off,
    ],
    dnsManagement,
  );
  const server = serverProcess(PEBBLE, ['-config', config, '-dnsserver', `127.0.0.1:${dns}`], port, { env });
  const write = (ports: { http: number; tls: number }, { validitySeconds = 90 * DAY }: PebbleOptions) =>
    writeFile(
      config,
      JSON.stringify({
        pebble: {
          listenAddress: `127.0.0.1:${port}`,
          managementListenAddress: `127.0.0.1:${management}`,
          ...{ certificate: cert.path, privateKey: key.path },
          ...{ httpPort: ports.http, tlsPort: ports.tls },
          retryAfter: { authz: 1, order: 1 },
          keyAlgorithm: 'ecdsa',
          profiles: { default: { description: 'The only one', validityPeriod: validitySeconds } },
        },
      }),
    );
  return {
    directory: `https://127.0.0.1:${port}/dir`,
    caFile: ca.path,
    start: async (ports, options = {}) => {
      await server.stop();
      await write(ports, options);
      await names.stop();
      await names.start();
      await server.start();
    },
    root: () => get(`https://127.0.0.1:${management}/roots/0`, ca.pem),
    setAddress: async (host, address) => {
      const path = address === null ? 'clear-a' : 'add-a';
      const { status } = await fetch(`http://127.0.0.1:${dnsManagement}/${path}`, {
        method: 'POST',
        body: JSON.stringify({ host: `${host}.`, ...(address !== null && { addresses: [address] }) }),
      });
      if (status !== 200) throw new Error(`The DNS server answered ${status}`);
    },
    remove: async () => {
      await server.stop();
      await names.stop();
      await folder.remove();
    },
  };
}

function get(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request(url, { ca, agent: false }, (answer) => resolve(text(answer)))
      .on('error', reject)
      .end();
  });
}
