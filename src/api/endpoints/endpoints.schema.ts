/** Endpoints as the contract shows them, and what else is worth knowing of one. */
import { Type } from '@sinclair/typebox';
import { type EndpointLimits, LIMITS_SCHEMA } from '../../model/endpoint-limits.js';
import { ENDPOINT_METHODS } from '../../model/endpoint-method.js';
import {
  Code,
  Description,
  DraftDependencies,
  EditionName,
  Enabled,
  Entry,
  FileDigest,
  FileDigests,
  Id,
  Lock,
  Name,
  nullable,
  Owner,
  oneOf,
  optional,
  PoliciesField,
  SourceFiles,
  Sticky,
  Target,
  Timestamp,
} from '../route/schemas.js';

const Path = Type.String({
  format: 'route-path',
  description: 'URL path pattern, e.g. /items/{id}, /reports/{id}.json or /files/{*path}',
});
const EndpointMethod = oneOf(ENDPOINT_METHODS);
const DomainName = Type.String({
  format: 'hostname-or-any',
  description: 'Hostname, or "*" for all domains',
});
const CollectionId = nullable(Id);
const LimitsField = Type.Unsafe<EndpointLimits | null>({ ...LIMITS_SCHEMA, type: ['object', 'null'] });

/** What a user says of an endpoint. */
const REQUIRED = { name: Name, path: Path, method: EndpointMethod, domain: DomainName };
const OPTIONAL = {
  collection_id: CollectionId,
  description: Description,
  code: Code,
  entry: nullable(Entry),
  files: nullable(SourceFiles),
  edition: nullable(EditionName),
  dependencies: DraftDependencies,
  lock: nullable(Lock),
  limits: LimitsField,
  policies: PoliciesField,
};
/** What is stored of an optional member that is not given. */
export const ENDPOINT_DEFAULTS = {
  collection_id: null,
  description: null,
  code: null,
  entry: null,
  files: null,
  edition: null,
  dependencies: null,
  lock: null,
  limits: null,
  policies: null,
  enabled: true,
  stack: null,
};

/** A version that serves, and how it stands on the gateway where it stands worst. */
export const TargetInForce = Type.Object(
  {
    ...Target.properties,
    state: nullable(
      oneOf(['starting', 'running', 'failed'], {
        description: 'Null while its handlers are asleep, and before a gateway has reported it',
      }),
    ),
    error: nullable(Type.String({ description: 'Why it cannot be started or kept running' })),
  },
  { title: 'TargetInForce' },
);

export const EndpointView = Type.Object(
  {
    id: Id,
    ...REQUIRED,
    ...OPTIONAL,
    entry: Entry,
    files: SourceFiles,
    edition: EditionName,
    route: Type.String({ description: 'Its whole path: that of the collection and its own, joined' }),
    enabled: Type.Boolean(),
    stack: Owner,
    status: oneOf(['created', 'compiled', 'running', 'stopped', 'error']),
    last_error: nullable(Type.String({ description: 'Why the status is `error`' })),
    needs_compile: Type.Boolean({ description: 'The source changed since the last successful build' }),
    running: Type.Boolean({
      description: 'A live gateway serves it now, with a process or with one that the next request starts',
    }),
    pid: nullable(
      Type.Integer({
        description: 'The process that serves it; none while it is asleep (`idle_ms` in `limits`)',
      }),
    ),
    running_version: nullable(Type.Integer({ description: 'The version that it serves' })),
    latest_version: nullable(
      Type.Integer({ description: 'The newest version: the last source that was compiled; `start` runs it' }),
    ),
    deployment: nullable(
      Type.Object(
        {
          id: Id,
          kind: oneOf(['start', 'deploy', 'rollback', 'canary']),
          targets: Type.Array(TargetInForce),
          sticky: nullable(Sticky),
          message: nullable(Type.String()),
          created_at: Timestamp,
        },
        { title: 'DeploymentInForce', description: 'Which versions serve, as was asked for last' },
      ),
    ),
    recent_errors: Type.Integer({
      description:
        'Requests of the last hour with an error, or a failed call of a service, in the log; at most 1000',
    }),
    last_failure: nullable(
      Type.Object(
        {
          at: Timestamp,
          message: Type.String(),
          place: nullable(Type.String({ description: 'Of a panic: `FILE:LINE:COLUMN`' })),
          version: nullable(Type.Integer()),
          request_id: Type.String({ description: 'For `GET /api/logs?request_id=`' }),
        },
        { title: 'LastFailure', description: 'The newest error of a request in the log of the last day' },
      ),
    ),
    build_id: nullable(Type.String({ format: 'uuid', description: 'The latest build' })),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Endpoint' },
);

/** What lists show of an endpoint: of its files and its lock no contents. */
export const ListedEndpoint = Type.Object(
  { ...EndpointView.properties, files: FileDigests, lock: nullable(FileDigest) },
  { title: 'ListedEndpoint' },
);

/** What the listing of a collection shows of an endpoint. */
export const EndpointSummary = Type.Pick(
  EndpointView,
  ['id', 'name', 'path', 'method', 'domain', 'collection_id', 'description', 'enabled'],
  { title: 'EndpointSummary' },
);

export const CreateEndpoint = Type.Object({
  ...REQUIRED,
  ...optional({ ...OPTIONAL, enabled: Enabled, stack: Owner }),
});

export const UpdateEndpoint = Type.Object(optional({ ...REQUIRED, ...OPTIONAL, enabled: Type.Boolean() }));

/** A file of an endpoint, as the list of them shows it. */
export const SourceFile = Type.Object(
  {
    path: Type.String(),
    digest: Type.String({ description: 'sha256, in hex' }),
    size: Type.Integer({ description: 'Bytes' }),
    shared_with: Type.Integer({
      description: 'How many other endpoints have the same file at this path, of those that one may see',
    }),
  },
  { title: 'SourceFile' },
);

/** The code of an endpoint, by itself. */
export const EndpointCode = Type.Object({ code: Code }, { title: 'EndpointCode' });

export const EndpointFilter = Type.Object({
  domain: Type.Optional(DomainName),
  collection_id: Type.Optional(Id),
  enabled: Type.Optional(Type.Boolean()),
});
