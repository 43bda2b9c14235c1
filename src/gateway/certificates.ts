/**
 * The certificates that a gateway shows to clients of TLS: read when they change, and now and then. What was read last
 * is kept while PostgreSQL is away.
 */
import { Gauge, type Registry } from 'prom-client';
import { isForHost } from '../model/certificate-names.js';
import type { Changes } from '../reconcile/changes.js';
import { type CertificateOfHost, certificatesOfHosts } from '../store/certificates.js';
import type { Store } from '../store/database.js';
import type { Logger } from '../util/log.js';
import { PeriodicTask } from '../util/periodic-task.js';
import type { Front } from './front.js';
import type { HostCertificate } from './messages.js';

/** Announcements can be lost. */
const READ_EVERY_MS = 30_000;

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
  readonly #reading: PeriodicTask;
  readonly #unsubscribe: readonly (() => void)[];
  #known: readonly CertificateOfHost[] = [];

  constructor(options: CertificatesOptions) {
    this.#options = options;
    const { changes, registry, log } = options;
    this.#reading = new PeriodicTask(
      READ_EVERY_MS,
      () => this.read(),
      (error) => log.warn({ err: error }, 'certificates could not be read; those of before are served'),
    );
    const readSoon = () => this.#reading.runSoon();
    this.#unsubscribe = [changes.onChange('certificate', readSoon), changes.onConnected(readSoon)];
    const expiry: Gauge<'host'> = new Gauge({
      name: 'edge_gateway_certificate_expiry_timestamp_seconds',
      help: 'When the certificate of a host expires, seconds since 1970',
      labelNames: ['host'],
      registers: [registry],
      // Gateways of a machine have the same.
      aggregator: 'max',
      collect: () => {
        expiry.reset();
        for (const { host, expires_at } of this.#known) expiry.set({ host }, expires_at.getTime() / 1000);
      },
    });
  }

  /** Tells the front of all there are. @throws Error when they cannot be read */
  async read(): Promise<void> {
    const { store, front } = this.#options;
    const all = await certificatesOfHosts(store);
    // A domain may have got another host since.
    this.#known = all.filter(({ host, names }) => isForHost(names, host));
    await front.setCertificates(this.#known.flatMap((certificate) => this.#opened(certificate)));
  }

  async stop(): Promise<void> {
    for (const end of this.#unsubscribe) end();
    await this.#reading.stop();
  }

  /** None when its key was encrypted with another SECRET_KEY. */
  #opened({ host, chain, key_encrypted }: CertificateOfHost): HostCertificate[] {
    const { decrypt, log } = this.#options;
    try {
      return [{ host, chain, key: decrypt(key_encrypted) }];
    } catch (error) {
      log.warn({ err: error, host }, 'the key of a certificate cannot be decrypted; the host is not served');
      return [];
    }
  }
}
