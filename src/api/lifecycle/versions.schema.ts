/** Versions and deployments as the API shows them. */
import { Type } from '@sinclair/typebox';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../model/crates.js';
import {
  Code,
  DraftDependencies,
  EditionName,
  Entry,
  Id,
  Lock,
  nullable,
  oneOf,
  optional,
  SourceFiles,
  Sticky,
  Target,
  Timestamp,
  Update,
} from '../route/schemas.js';

const MESSAGE_LENGTH = 1_000;

const Version = Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'Number of a version' });
const Message = nullable(
  Type.String({ format: 'text', maxLength: MESSAGE_LENGTH, description: 'Why, in the words of the author' }),
);
const Actor = nullable(
  Type.Record(Type.String(), Type.Unknown(), { description: 'Who did it; null: not known' }),
);

export const VersionParams = Type.Object({
  id: Id,
  version: Type.String({ pattern: '^[1-9][0-9]{0,8}$', description: 'Number of a version' }),
});

const VERSION = {
  version: Version,
  message: Message,
  actor: Actor,
  deployed_percent: Type.Integer({ description: 'Share of the requests that it serves; 0: none' }),
  created_at: Timestamp,
};

/** What the list of versions shows of one. */
export const VersionSummary = Type.Object(VERSION, { title: 'VersionSummary' });

export const VersionView = Type.Object(
  {
    ...VERSION,
    code: Type.String(),
    entry: Entry,
    files: SourceFiles,
    edition: EditionName,
    dependencies: Type.Unsafe<Dependencies>(DEPENDENCIES_SCHEMA),
    lock: nullable(
      Type.String({
        description:
          'The text of the Cargo.lock that it was built with; null: not known, as of one from before',
      }),
    ),
  },
  { title: 'Version' },
);

export const DiffQuery = Type.Object({
  to: Type.String({ pattern: '^[1-9][0-9]{0,8}$', description: 'Number of the other version' }),
});

const ChangedVersion = (description: string) => nullable(Type.String({ description }));

export const VersionDiff = Type.Object(
  {
    from: Version,
    to: Version,
    diff: Type.String({ description: 'A unified diff; empty: no difference' }),
    crates: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          from: ChangedVersion('Its version in the first; null: it is not there'),
          to: ChangedVersion('Its version in the other; null: it is not there'),
        },
        { title: 'ChangedCrate' },
      ),
      { description: 'Crates whose versions differ; none where a lock is not known' },
    ),
  },
  { title: 'VersionDiff' },
);

export const DeploymentView = Type.Object(
  {
    id: Id,
    kind: oneOf(['start', 'deploy', 'rollback', 'canary', 'stop', 'crash']),
    targets: Type.Array(Target),
    sticky: nullable(Sticky),
    message: Message,
    actor: Actor,
    outcome: oneOf(['pending', 'succeeded', 'failed', 'overtaken']),
    error: nullable(Type.String({ description: 'Why it failed' })),
    created_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { title: 'Deployment' },
);

export const Deploy = Type.Object(
  optional({
    code: Code,
    entry: nullable(Entry),
    files: nullable(SourceFiles),
    edition: nullable(EditionName),
    dependencies: DraftDependencies,
    lock: nullable(Lock),
    update: Update,
    message: Message,
    percent: Type.Integer({
      minimum: 1,
      maximum: 100,
      description:
        'Share of the requests for the new version; what serves now keeps the rest. 100 unless given',
    }),
  }),
);

export const Rollback = Type.Object(optional({ version: Version, message: Message }));

export const SetDeployment = Type.Object({
  targets: Type.Array(Target, { minItems: 1, maxItems: 2, description: 'Their percentages add up to 100' }),
  sticky: Type.Optional(nullable(Sticky)),
  message: Type.Optional(Message),
});

const RUNNING = {
  deployment_id: Id,
  pid: nullable(Type.Integer({ description: 'Null when its handlers fell asleep at once' })),
  status: Type.Literal('running'),
};

export const Deployed = Type.Object(
  {
    version: Version,
    build_id: Id,
    cached: Type.Boolean({ description: 'True when the same code had been compiled before' }),
    ...RUNNING,
  },
  { title: 'Deployed' },
);

export const RolledBack = Type.Object({ version: Version, ...RUNNING }, { title: 'RolledBack' });

export const DeploymentSet = Type.Object(
  { targets: Type.Array(Target), ...RUNNING },
  { title: 'DeploymentSet' },
);
