/** Applies as the API takes and shows them. */
import { Type } from '@sinclair/typebox';
import { VALIDATE_MODES } from '../../model/policies/validate.js';
import type { FileContents } from '../../model/source-files.js';
import { FileContentSchema, Flag, Id, Name, nullable, oneOf, StackName } from '../route/schemas.js';

/** Also the name of the overlay's file. */
export const ENVIRONMENT = '^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$';

export const PlanHash = Type.Optional(
  Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Of the plan that is to be carried out' }),
);

export const NoWait = Flag('Fail with `apply_busy` rather than wait for other applies');

export const ApplyQuery = Type.Object({
  dry_run: Flag('Say what the apply would do; change nothing'),
  env: Type.Optional(
    Type.String({ pattern: ENVIRONMENT, description: 'The overlay to merge: edge.ENV.yaml of the folder' }),
  ),
  prune: Flag('Remove objects of the stack that the folder does not have'),
  plan_hash: PlanHash,
  no_wait: NoWait,
  adopt: Flag('Make objects of the folder that belong to no stack those of its stack'),
});

/** The member of a body in JSON. */
export const Files = Type.Unsafe<FileContents>({
  type: 'object',
  description: 'The files of the folder by their paths',
  additionalProperties: FileContentSchema,
});

export const PlanView = Type.Object(
  {
    stack: Type.String(),
    plan_hash: Type.String({ description: 'Of all changes: equal plans have equal ones' }),
    changes: Type.Array(
      Type.Object({
        action: oneOf(['create', 'update', 'delete']),
        kind: oneOf(['domain', 'collection', 'endpoint', 'service']),
        name: Type.String({ description: 'Natural key: host, HOST/NAME, METHOD HOST/ROUTE, or name' }),
        fields: Type.Array(
          Type.Object({
            path: Type.String(),
            before: Type.Unknown(),
            after: Type.Unknown(),
            diff: Type.Optional(Type.String({ description: 'Of code, when it is not too large' })),
          }),
          {
            description: 'What differs. Of code there are digests; of values that are too large, their sizes',
          },
        ),
      }),
      { description: 'In the order in which they are written' },
    ),
    warnings: Type.Array(Type.String()),
  },
  { title: 'Plan' },
);

export const ExportQuery = Type.Object({
  domain: Type.Optional(
    Type.String({
      format: 'hostname-or-any',
      description: 'Only the domain with this host, what is in it, and the services that it uses',
    }),
  ),
  stack: Type.Optional(Type.String({ ...StackName, description: 'Only what belongs to this stack' })),
});

export const OpenApiExportQuery = Type.Object({
  domain: Type.String({ format: 'hostname-or-any', description: 'The host of the endpoints' }),
  collection_id: Type.Optional(
    Type.Unsafe<string>({ ...Id, description: 'Only the endpoints of this collection' }),
  ),
  endpoint_id: Type.Optional(Type.Unsafe<string>({ ...Id, description: 'Only this endpoint' })),
});

export const OpenApiExportView = Type.Object(
  {
    documents: Type.Array(
      Type.Object({
        collection: nullable(Type.Object({ id: Id, name: Name })),
        validate: oneOf(VALIDATE_MODES, {
          description: 'With which `validate` an import changes nothing, policies included',
        }),
        document: Type.Record(Type.String(), Type.Unknown(), { description: 'OpenAPI 3' }),
      }),
      { description: 'Of each collection, and of each document that was imported, one' },
    ),
  },
  { title: 'OpenApiExport' },
);

export const ExportView = Type.Object({ files: Files }, { title: 'Export' });
