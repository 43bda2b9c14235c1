/**
 * The certificates that a gateway shows to clients of TLS: read when they change, and now and then. What was read last
 * is kept while PostgreSQL is away.
 */
import { isDeepStrictEqual } from 'node:util';
import { Gauge, type Registry } from 'prom-client';
import type { Certificate } from '../../contracts/front.js';
import { isForHost } from '../../model/certificate-names.js';
import type { Changes } from '../../reconcile/changes.js';
import { Rereading } from '../../reconcile/rereading.js';
import { type CertificateOfHost, certificatesOfHosts } from '../../store/certificates.js';
import type { Store } from '../../store/database.js';
import type { Logger } from '../../util/log.js';
import type { Front } from './front.js';

interface CertificatesOptions {
  readonly store: Store;
  readonly changes: Changes;
  /** Throws when something was encrypted with another key. */
  readonly decrypt: (encrypted: string) => string;
  readonly front: Pick<Front, 'setCertificates'>;
  readonly registry: Registry;
  readonly log: Logger;
}

export class Certificates {
  readonly #options: CertificatesOptions;
  #reading: Rereading | undefined;
  #known: readonly CertificateOfHost[] = [];
  /** What the front has. */
  #sent: readonly Certificate[] | undefined;

  constructor(options: CertificatesOptions) {
    this.#options = options;
    const expiry: Gauge<'host'> = new Gauge({
      name: 'edge_gateway_certificate_expiry_timestamp_seconds',
      help: 'When the certificate of a host expires, seconds since 1970',
      labelNames: ['host'],
      registers: [options.registry],
      // Gateways of a machine have the same.
      aggregator: 'max',
      collect: () => {
        expiry.reset();
        for (const { host, expires_at } of this.#known) expiry.set({ host }, expires_at.getTime() / 1000);
      },
    });
  }

  /** Tells the front of all there are, from now on. @throws Error when they cannot be read at first */
  async start(): Promise<void> {
    const { changes, log } = this.#options;
    this.#reading = await Rereading.start({
      changes,
      topic: 'certificate',
      read: () => this.#read(),
      onError: (error) =>
        log.warn({ err: error }, 'certificates could not be read; the earlier ones are served'),
    });
  }

  async #read(): Promise<void> {
    const { store, front } = this.#options;
    const all = await certificatesOfHosts(store);
    // A domain may have got another host since.
    this.#known = all.filter(({ host, names }) => isForHost(names, host));
    const certificates = this.#known.flatMap((certificate) => this.#opened(certificate));
    // It forgets the sessions of its clients when it is told.
    if (isDeepStrictEqual(certificates, this.#sent)) return;
    await front.setCertificates(certificates);
    this.#sent = certificates;
  }

  async stop(): Promise<void> {
    await this.#reading?.stop();
  }

  /** None when its key was encrypted with another SECRET_KEY. */
  #opened({ host, chain, key_encrypted }: CertificateOfHost): Certificate[] {
    const { decrypt, log } = this.#options;
    try {
      return [{ host, chain, key: decrypt(key_encrypted) }];
    } catch (error) {
      log.warn({ err: error, host }, 'the key of a certificate cannot be decrypted; the host is not served');
      return [];
    }
  }
}
