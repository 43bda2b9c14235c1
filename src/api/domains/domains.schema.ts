/** Domains as the contract shows them. */
import { Type } from '@sinclair/typebox';
import {
  Description,
  Enabled,
  Id,
  Name,
  nullable,
  Owner,
  optional,
  PoliciesField,
  Timestamp,
} from '../route/schemas.js';

const Host = Type.String({ format: 'hostname', description: 'Hostname, unique among domains' });

/** What a user says of a domain. */
const REQUIRED = { name: Name, host: Host };
const OPTIONAL = { description: Description, policies: PoliciesField };
/** What is stored of an optional member that is not given. */
export const DOMAIN_DEFAULTS = { description: null, policies: null, enabled: true, stack: null };

const CertificateOrder = Type.Object(
  {
    state: Type.Union([
      Type.Literal('queued'),
      Type.Literal('ordering'),
      Type.Literal('issued'),
      Type.Literal('failed'),
    ]),
    error: nullable(Type.String({ description: 'Why it has failed, until a later one is successful' })),
    tried_at: nullable(Type.String({ format: 'date-time' })),
    next_try_at: nullable(Type.String({ format: 'date-time', description: 'Of one that has failed' })),
  },
  { description: 'The last order of a certificate by ACME; null: none, or a user has set a certificate' },
);

export const DomainView = Type.Object(
  {
    id: Id,
    ...REQUIRED,
    ...OPTIONAL,
    enabled: Type.Boolean(),
    stack: Owner,
    certificate_expires_at: nullable(
      Type.String({ format: 'date-time', description: 'Of its certificate for TLS; null: it has none' }),
    ),
    certificate_order: nullable(CertificateOrder),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Domain' },
);

export const CreateDomain = Type.Object({
  ...REQUIRED,
  ...optional({ ...OPTIONAL, enabled: Enabled, stack: Owner }),
});

export const UpdateDomain = Type.Object(optional({ ...REQUIRED, ...OPTIONAL, enabled: Type.Boolean() }));
