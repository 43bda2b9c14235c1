/** Policies in force, and keys of domains, as the API shows them. */
import { Type } from '@sinclair/typebox';
import { Id, Name, nullable, oneOf, Timestamp } from '../route/schemas.js';

const ExpiresAt = nullable(
  Type.String({ format: 'date-time', description: 'ISO 8601; from then on it is refused. Null: never' }),
);

export const DomainKeyView = Type.Object(
  {
    id: Id,
    label: Type.String(),
    prefix: Type.String({ description: 'How it begins' }),
    expires_at: nullable(Timestamp),
    created_at: Timestamp,
  },
  { title: 'DomainKey' },
);

export const CreateDomainKey = Type.Object({ label: Name, expires_at: Type.Optional(ExpiresAt) });

export const CreatedDomainKey = Type.Object(
  { ...DomainKeyView.properties, key: Type.String({ description: 'It is never shown again' }) },
  { title: 'CreatedDomainKey' },
);

export const DomainKeyParams = Type.Object({ id: Id, key_id: Id });

export const PoliciesView = Type.Object(
  {
    policies: Type.Record(Type.String(), Type.Unknown(), { description: 'What is in force, by name' }),
    sources: Type.Record(
      Type.String(),
      Type.Object({
        scope: oneOf(['domain', 'collection', 'endpoint'], { description: 'Where it is set' }),
        owner_id: Type.String({ format: 'uuid', description: 'The domain, collection or endpoint' }),
      }),
      { description: 'Where each is set; also of those that are switched off with null' },
    ),
    problems: Type.Array(Type.String(), {
      description: 'Why nobody can be let in, or not everybody: a secret that is not set, for example',
    }),
  },
  { title: 'PoliciesInForce' },
);
