/** Collections as the contract shows them. */
import { Type } from '@sinclair/typebox';
import { Description, Enabled, Id, Name, nullable, Timestamp } from '../schemas.js';

const BasePath = nullable(
  Type.String({ format: 'base-path', description: 'Common path prefix of its endpoints, e.g. /shop' }),
);

export const CollectionView = Type.Object(
  {
    id: Id,
    domain_id: Id,
    name: Name,
    description: Description,
    base_path: BasePath,
    enabled: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Collection' },
);

export const CreateCollection = Type.Object({
  domain_id: Id,
  name: Name,
  description: Type.Optional(Description),
  base_path: Type.Optional(BasePath),
  enabled: Type.Optional(Enabled),
});

export const UpdateCollection = Type.Object({
  name: Type.Optional(Name),
  description: Type.Optional(Description),
  base_path: Type.Optional(BasePath),
  enabled: Type.Optional(Type.Boolean()),
});

export const CollectionFilter = Type.Object({ domain_id: Type.Optional(Id) });
