/** Collections as the contract shows them. */
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

const BasePath = nullable(
  Type.String({ format: 'base-path', description: 'Common path prefix of its endpoints, e.g. /shop' }),
);

/** What a user says of a collection, beside its domain. */
const REQUIRED = { name: Name };
const OPTIONAL = { description: Description, base_path: BasePath, policies: PoliciesField };
/** What is stored of an optional member that is not given. */
export const COLLECTION_DEFAULTS = {
  description: null,
  base_path: null,
  policies: null,
  enabled: true,
  stack: null,
};

export const CollectionView = Type.Object(
  {
    id: Id,
    domain_id: Id,
    ...REQUIRED,
    ...OPTIONAL,
    enabled: Type.Boolean(),
    stack: Owner,
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Collection' },
);

export const CreateCollection = Type.Object({
  domain_id: Id,
  ...REQUIRED,
  ...optional({ ...OPTIONAL, enabled: Enabled, stack: Owner }),
});

export const UpdateCollection = Type.Object(optional({ ...REQUIRED, ...OPTIONAL, enabled: Type.Boolean() }));

export const CollectionFilter = Type.Object({ domain_id: Type.Optional(Id) });
