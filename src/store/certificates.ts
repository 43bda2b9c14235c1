/** The table `certificates`: what domains show to clients of TLS. Keys are encrypted. */
import { type Store, transaction } from './database.js';

/** A row. */
export interface Certificate {
  readonly domain_id: string;
  /** PEM: its own certificate first. */
  readonly chain: string;
  readonly key_encrypted: string;
  /** The hosts that it is for; some begin with `*.`. */
  readonly names: readonly string[];
  readonly issuer: string;
  /** sha256, in hexadecimal digits. */
  readonly fingerprint: string;
  readonly valid_from: Date;
  readonly expires_at: Date;
  /** The directory of the ACME server that has issued it; null: a user has set it. */
  readonly ordered_from: string | null;
  readonly updated_at: Date;
}

export type NewCertificate = Omit<Certificate, 'updated_at'>;

export async function findCertificate(store: Store, domainId: string): Promise<Certificate | undefined> {
  return store.knex<Certificate>('certificates').where({ domain_id: domainId }).first();
}

/**
 * Makes it the certificate of its domain.
 * @returns undefined when there is no such domain
 */
export async function saveCertificate(
  store: Store,
  certificate: NewCertificate,
): Promise<Certificate | undefined> {
  return transaction(store, async (tx) => {
    const { domain_id: id } = certificate;
    if (!(await tx.knex('domains').where({ id }).forShare().first('id'))) return undefined;
    const [saved] = await tx
      .knex<Certificate>('certificates')
      .insert({ ...certificate, updated_at: tx.knex.raw('clock_timestamp()') as unknown as Date })
      .onConflict('domain_id')
      .merge()
      .returning('*');
    tx.announce('certificate', id);
    return saved;
  });
}

/** @returns whether there was one */
export async function deleteCertificate(store: Store, domainId: string): Promise<boolean> {
  return transaction(store, async (tx) => {
    const deleted = await tx.knex('certificates').where({ domain_id: domainId }).delete();
    tx.announce('certificate', domainId);
    return deleted > 0;
  });
}

/** A certificate, and the host that shows it. */
export interface CertificateOfHost
  extends Pick<Certificate, 'chain' | 'key_encrypted' | 'names' | 'expires_at'> {
  readonly host: string;
}

/** Those of all domains, by host. */
export async function certificatesOfHosts(store: Store): Promise<CertificateOfHost[]> {
  return store
    .knex('certificates')
    .join('domains', 'domains.id', 'domain_id')
    .select<CertificateOfHost[]>('host', 'chain', 'key_encrypted', 'names', 'expires_at')
    .orderBy('host');
}
