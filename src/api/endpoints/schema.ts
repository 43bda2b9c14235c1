/** Endpoints as the contract shows them, and what else is worth knowing of one. */
import { Type } from '@sinclair/typebox';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../dependencies.js';
import { type EndpointLimits, LIMITS_SCHEMA } from '../../endpoint-limits.js';
import { ENDPOINT_METHODS } from '../../endpoint-method.js';
import { Description, Enabled, Id, Name, nullable, oneOf, Timestamp } from '../schemas.js';

const Path = Type.String({
  format: 'route-path',
  description: 'URL path pattern; a {parameter} fills a whole segment, e.g. /items/{id}',
});
const EndpointMethod = oneOf(ENDPOINT_METHODS);
const DomainName = Type.String({
  format: 'hostname-or-any',
  description: 'Hostname, or "*" for all domains',
});
const CollectionId = nullable(Id);
const Code = nullable(Type.String({ format: 'text', description: 'Handler source code (Rust)' }));
const DependenciesField = Type.Unsafe<Dependencies | null>({
  ...DEPENDENCIES_SCHEMA,
  type: ['object', 'null'],
});
const LimitsField = Type.Unsafe<EndpointLimits | null>({ ...LIMITS_SCHEMA, type: ['object', 'null'] });

/** What the listing of a collection shows of an endpoint. */
const summary = {
  id: Id,
  name: Name,
  path: Path,
  method: EndpointMethod,
  domain: DomainName,
  collection_id: CollectionId,
  description: Description,
  enabled: Type.Boolean(),
};

export const EndpointSummary = Type.Object(summary, { title: 'EndpointSummary' });

export const EndpointView = Type.Object(
  {
    ...summary,
    code: Code,
    dependencies: DependenciesField,
    limits: LimitsField,
    status: oneOf(['created', 'compiled', 'running', 'stopped', 'error']),
    last_error: nullable(Type.String({ description: 'Why the status is `error`' })),
    needs_compile: Type.Boolean({ description: 'The source changed since the last successful build' }),
    running: Type.Boolean({ description: 'A process on a live gateway serves it now' }),
    pid: nullable(Type.Integer({ description: 'That process' })),
    build_id: nullable(Type.String({ format: 'uuid', description: 'The latest build' })),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Endpoint' },
);

export const CreateEndpoint = Type.Object({
  name: Name,
  path: Path,
  method: EndpointMethod,
  domain: DomainName,
  collection_id: Type.Optional(CollectionId),
  description: Type.Optional(Description),
  code: Type.Optional(Code),
  dependencies: Type.Optional(DependenciesField),
  limits: Type.Optional(LimitsField),
  enabled: Type.Optional(Enabled),
});

export const UpdateEndpoint = Type.Object({
  name: Type.Optional(Name),
  path: Type.Optional(Path),
  method: Type.Optional(EndpointMethod),
  domain: Type.Optional(DomainName),
  collection_id: Type.Optional(CollectionId),
  description: Type.Optional(Description),
  code: Type.Optional(Code),
  dependencies: Type.Optional(DependenciesField),
  limits: Type.Optional(LimitsField),
  enabled: Type.Optional(Type.Boolean()),
});

export const EndpointFilter = Type.Object({
  domain: Type.Optional(DomainName),
  collection_id: Type.Optional(Id),
  enabled: Type.Optional(Type.Boolean()),
});
