/** The certificates of domains, for TLS. */
import { Type } from '@sinclair/typebox';
import { notFound, requireFound } from '../../errors.js';
import { checkCertificate } from '../../model/certificate.js';
import { retryOrder } from '../../store/acme.js';
import {
  type Certificate,
  deleteCertificate,
  findCertificate,
  saveCertificate,
} from '../../store/certificates.js';
import { findDomain } from '../../store/domains.js';
import { presenter } from '../response/present.js';
import { Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { IdParams, nullable, Timestamp } from '../route/schemas.js';
import { DomainView } from './domains.schema.js';

const tag = 'Domains';
const path = '/api/domains/{id}/certificate';
const params = IdParams;
const Pem = (description: string) => Type.String({ minLength: 1, maxLength: 65_536, description });

const NewCertificate = Type.Object({
  certificate: Pem('PEM: the certificate of the host, then those that lead to one that clients know'),
  private_key: Pem('PEM, without a passphrase; it is stored encrypted, and never shown'),
});

const CertificateView = Type.Object(
  {
    names: Type.Array(Type.String(), { description: 'The hosts that it is for' }),
    issuer: Type.String(),
    fingerprint: Type.String({ description: 'sha256, in hexadecimal digits' }),
    valid_from: Timestamp,
    expires_at: Timestamp,
    ordered_from: nullable(
      Type.String({
        description: 'The directory of the ACME server that has issued it; null: a user has set it',
      }),
    ),
    chain: Type.String({ description: 'PEM, as clients get it' }),
    updated_at: Timestamp,
  },
  { title: 'Certificate' },
);
const presentColumns = presenter(CertificateView);
const presentDomain = presenter(DomainView);
const present = (certificate: Certificate) =>
  presentColumns({ ...certificate, names: [...certificate.names] });
const NO_TLS = 'It is stored. This installation serves no TLS: set TLS_PORT for its gateways.';

export const certificateRoutes = [
  defineRoute({
    method: 'GET',
    path,
    permission: 'domains:read',
    summary: 'Show the certificate of a domain, without its key',
    tag,
    params,
    data: CertificateView,
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findDomain(store, id), 'domain', id);
      return present(requireFound(await findCertificate(store, id), 'certificate of domain', id));
    },
  }),

  defineRoute({
    method: 'PUT',
    path,
    permission: 'domains:write',
    summary: 'Serve the host of a domain over TLS with this certificate; open connections keep theirs',
    tag,
    params,
    body: NewCertificate,
    data: CertificateView,
    handle: async ({ params: { id }, body }, { store, secrets, config }) => {
      const { host } = requireFound(await findDomain(store, id), 'domain', id);
      const checked = checkCertificate(body, host);
      const key_encrypted = secrets.seal(body.private_key);
      const saved = await saveCertificate(store, {
        ...checked,
        domain_id: id,
        key_encrypted,
        ordered_from: null,
      });
      const certificate = requireFound(saved, 'domain', id);
      return new Reply(200, present(certificate), {}, config.TLS_PORT === undefined ? [NO_TLS] : []);
    },
  }),

  defineRoute({
    method: 'POST',
    path: `${path}/order`,
    permission: 'domains:write',
    summary:
      'Order the certificate of a domain by ACME now, where that has failed, instead of at `next_try_at`',
    tag,
    params,
    data: DomainView,
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findDomain(store, id), 'domain', id);
      if (!(await retryOrder(store, id))) throw notFound('order of a certificate of domain', id);
      return presentDomain(requireFound(await findDomain(store, id), 'domain', id));
    },
  }),

  defineRoute({
    method: 'DELETE',
    path,
    permission: 'domains:write',
    summary: 'Serve a domain without TLS',
    tag,
    params,
    data: Type.Null(),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findDomain(store, id), 'domain', id);
      if (!(await deleteCertificate(store, id))) throw notFound('certificate of domain', id);
      return null;
    },
  }),
];
