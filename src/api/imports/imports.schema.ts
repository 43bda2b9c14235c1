/** Schemas of imports. */
import { type Static, Type } from '@sinclair/typebox';
import { ENDPOINT_METHODS } from '../../model/endpoint-method.js';
import { VALIDATE_MODES } from '../../model/policies/validate.js';
import type { BuildingCrates } from '../../model/preparation.js';
import { FilePart } from '../request/form.js';
import { Flag, Id, Name, nullable, oneOf, Timestamp } from '../route/schemas.js';

const Domain = Type.String({
  format: 'hostname-or-any',
  description: 'Hostname to attach the endpoints to, or "*" for all domains',
});
const domainId = { ...Id, description: 'Needed with `create_collection`; its host must be `domain`' };
const collectionId = { ...Id, description: 'Existing collection to add the endpoints to' };

export const Spec = Type.String({
  description: 'Text of a document of OpenAPI 3 or Swagger 2.0, YAML or JSON',
});

export const OpenApiImport = Type.Object({
  domain: Domain,
  domain_id: Type.Optional(nullable(Type.Unsafe<string>(domainId))),
  collection_id: Type.Optional(nullable(Type.Unsafe<string>(collectionId))),
  create_collection: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Use the domain's collection with the title of the document; create it if there is none",
    }),
  ),
});

const DryRun = Flag('Say what the import would do, with its warnings and errors; store nothing');

const Validate = Type.Optional(
  oneOf(VALIDATE_MODES, {
    description:
      'Sets the policy `validate` of the endpoints as the document says; `off` by default: then none',
  }),
);

export const OpenApiQuery = Type.Object({ dry_run: DryRun, validate: Validate });

export const BundleQuery = Type.Object({
  dry_run: DryRun,
  domain: Domain,
  domain_id: Type.Optional(Type.Unsafe<string>(domainId)),
  collection_id: Type.Optional(Type.Unsafe<string>(collectionId)),
  create_collection: Flag(
    "Use the domain's collection with the title of the document; create it if there is none",
  ),
  compile: Flag('Compile the handlers of the bundle; generated ones are not compiled'),
  start: Flag('Start the compiled handlers; needs `compile`'),
  validate: Validate,
});

/** One of these parts has the ZIP file. */
export const BundleForm = Type.Object({
  bundle: Type.Optional(FilePart),
  file: Type.Optional(FilePart),
  zip: Type.Optional(FilePart),
});

const ImportedCollection = nullable(
  Type.Object({ id: Id, name: Name, base_path: nullable(Type.String()) }, { title: 'ImportedCollection' }),
);
const endpoint = {
  id: Id,
  name: Type.String({ description: 'The operationId, else `METHOD /path`' }),
  path: Type.String({ description: 'Relative to the base path of the collection' }),
  method: oneOf(ENDPOINT_METHODS),
};
const HandlerFile = Type.String({ description: 'File in the bundle' });

export const OpenApiImported = Type.Object(
  {
    import_id: Id,
    collection: ImportedCollection,
    endpoints_created: Type.Integer(),
    endpoints_updated: Type.Integer(),
    endpoints: Type.Array(Type.Object(endpoint)),
  },
  { title: 'OpenApiImported' },
);

const ImportError = Type.Object(
  {
    stage: oneOf(['match', 'compile', 'start']),
    endpoint_id: nullable(Id),
    name: nullable(Type.String()),
    handler: nullable(HandlerFile),
    message: Type.String(),
  },
  { title: 'ImportError' },
);

export const BundleImported = Type.Object(
  {
    import_id: Id,
    collection: ImportedCollection,
    endpoints_created: Type.Integer(),
    endpoints_updated: Type.Integer(),
    handlers_matched: Type.Integer(),
    compiled: Type.Integer(),
    started: Type.Integer(),
    endpoints: Type.Array(
      Type.Object({
        ...endpoint,
        status: oneOf(['created', 'compiled', 'running', 'stopped', 'error']),
        handler: nullable(HandlerFile),
      }),
    ),
    errors: Type.Array(ImportError),
  },
  { title: 'BundleImported' },
);

export const ImportPlan = Type.Object(
  {
    dry_run: Type.Literal(true),
    collection: nullable(
      Type.Object({
        id: nullable(
          Type.String({ format: 'uuid', description: 'Null for a collection that would be created' }),
        ),
        name: Name,
        base_path: nullable(Type.String()),
      }),
    ),
    endpoints_created: Type.Integer(),
    endpoints_updated: Type.Integer(),
    endpoints: Type.Array(
      Type.Object({
        ...endpoint,
        id: nullable(
          Type.String({ format: 'uuid', description: 'Null for an endpoint that would be created' }),
        ),
        change: oneOf(['created', 'updated', 'unchanged']),
        code: oneOf(['handler', 'generated', 'kept'], {
          description:
            'The handler of the bundle, generated code, or the code that a user wrote, which is kept',
        }),
        handler: nullable(HandlerFile),
      }),
    ),
    left_out: Type.Array(Type.String(), {
      description: 'Operations that cannot be endpoints, with the reasons',
    }),
    errors: Type.Array(ImportError),
  },
  { title: 'ImportPlan' },
);

export const ImportAccepted = Type.Object(
  { import_id: Id, status: Type.Literal('queued') },
  { title: 'ImportAccepted' },
);

const ImportHandlerCounts = Type.Object(
  {
    queued: Type.Integer(),
    compiling: Type.Integer(),
    compiled: Type.Integer(),
    starting: Type.Integer(),
    started: Type.Integer(),
    failed: Type.Integer(),
  },
  { title: 'ImportCounts', description: 'Handlers by state' },
);

export const HandlerView = Type.Object(
  {
    endpoint_id: Id,
    name: Type.String(),
    handler: HandlerFile,
    state: oneOf(['queued', 'compiling', 'compiled', 'starting', 'started', 'failed']),
    stage: nullable(oneOf(['compile', 'start'], { description: 'The stage that failed' })),
    message: nullable(Type.String({ description: 'Why it failed' })),
    build_id: nullable(Id),
    attempt: Type.Integer({ description: 'Greater than 1 when a lost job was queued again' }),
  },
  { title: 'ImportHandler' },
);

const state = oneOf(['queued', 'running', 'succeeded', 'failed'], {
  description: '`succeeded` without errors, `failed` when `errors` is not empty',
});

export const ImportView = Type.Object(
  {
    id: Id,
    state,
    title: Type.String(),
    compile: Type.Boolean(),
    start: Type.Boolean(),
    counts: ImportHandlerCounts,
    handlers: Type.Array(HandlerView),
    warnings: Type.Array(Type.String()),
    errors: Type.Array(ImportError),
    result: nullable(BundleImported),
    request_id: Type.String({ description: 'Request id of the API call that started the import' }),
    created_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { title: 'Import' },
);

/** The `data` of the event `progress`. */
export interface ProgressEvent {
  readonly state: Static<typeof state>;
  readonly counts: Static<typeof ImportHandlerCounts>;
  /** Handlers that have changed since the previous event. */
  readonly handlers: readonly Static<typeof HandlerView>[];
  /** The crates that its handlers wait for. */
  readonly crates: readonly BuildingCrates[];
}
