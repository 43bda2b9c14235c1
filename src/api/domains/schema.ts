/** Domains as the contract shows them. */
import { Type } from '@sinclair/typebox';
import { Description, Enabled, Id, Name, Timestamp } from '../schemas.js';

const Host = Type.String({ format: 'hostname', description: 'Hostname, unique among domains' });

export const DomainView = Type.Object(
  {
    id: Id,
    name: Name,
    host: Host,
    description: Description,
    enabled: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Domain' },
);

export const CreateDomain = Type.Object({
  name: Name,
  host: Host,
  description: Type.Optional(Description),
  enabled: Type.Optional(Enabled),
});

export const UpdateDomain = Type.Object({
  name: Type.Optional(Name),
  host: Type.Optional(Host),
  description: Type.Optional(Description),
  enabled: Type.Optional(Type.Boolean()),
});
