/** Domains whose certificates are ordered from an ACME server, as the management API shows them. */
import { expect } from 'chai';
import type { HttpClient } from './client.js';
import { eventually } from './eventually.js';
import { expectData } from './expect.js';

/** An order takes seconds, and the first pause after one that has failed is half a minute. */
export const ORDER_WAIT_MS = 150_000;

export interface DomainState {
  readonly id: string;
  readonly certificate_expires_at: string | null;
  readonly certificate_order: {
    readonly state: string;
    readonly error: string | null;
    readonly tried_at: string | null;
    readonly next_try_at: string | null;
  } | null;
}

export interface CertificateState {
  readonly ordered_from: string | null;
  readonly fingerprint: string;
  readonly names: readonly string[];
}

export class AcmeDomains {
  constructor(readonly api: HttpClient) {}

  /** @returns its id */
  async add(host: string): Promise<string> {
    return expectData<DomainState>(await this.api.post('/api/domains', { name: host, host }), 201).id;
  }

  async read(id: string): Promise<DomainState> {
    return expectData<DomainState>(await this.api.get(`/api/domains/${id}`));
  }

  async certificate(id: string): Promise<CertificateState> {
    return expectData<CertificateState>(await this.api.get(`/api/domains/${id}/certificate`));
  }

  /** Resolves when its order is in a state. */
  reaches(id: string, state: string): Promise<DomainState> {
    return eventually(async () => {
      const found = await this.read(id);
      expect(found.certificate_order, JSON.stringify(found)).to.include({ state });
      return found;
    }, ORDER_WAIT_MS);
  }
}
