/** Health and statistics as the contract shows them. */
import { Type } from '@sinclair/typebox';
import { Preparation } from '../../model/preparation.js';
import { Id, nullable, oneOf, Timestamp } from '../route/schemas.js';

const SandboxLevel = Type.Union([
  Type.Literal('namespaces'),
  Type.Literal('landlock'),
  Type.Literal('limits'),
  Type.Null(),
]);

export const Health = Type.Object(
  {
    status: Type.Literal('healthy'),
    version: Type.String(),
    sandbox: Type.Object(
      { gateway: SandboxLevel, worker: SandboxLevel },
      {
        description:
          'What confines untrusted code: the weakest level in force on the live gateways (for handlers) and workers (for ' +
          'compilers). `namespaces`: those of the kernel besides Landlock; `landlock`: Landlock and a filter of system calls; ' +
          '`limits`: resource limits only; null: none is alive',
      },
    ),
    rustc: Type.Array(
      Type.Object(
        {
          version: Type.String({ description: 'Such as `rustc 1.95.0 (59807616e 2026-04-14)`' }),
          host: nullable(Type.String({ description: 'The target of handlers; null: not known' })),
        },
        { title: 'Compiler' },
      ),
      { description: 'What the live workers compile handlers with: one, unless they differ' },
    ),
    preparing: Type.Array(Preparation, {
      description: 'What workers build before they can compile handlers; a compile waits for it',
    }),
    log: Type.Object(
      {
        hour_percent: nullable(
          Type.Integer({
            description: 'What entries of this hour take of LOG_RETENTION_MB; null: not known yet',
          }),
        ),
        leaves_out: Type.Boolean({
          description: 'Whether gateways leave out entries of endpoints that say much, because of that',
        }),
      },
      { description: 'The log of handlers and requests' },
    ),
    key_rotation: nullable(
      Type.Object(
        { left: nullable(Type.Integer({ description: 'null: not known yet' })) },
        {
          description:
            'How many values are not yet encrypted with SECRET_KEY. 0: when all processes have it, SECRET_KEY_PREVIOUS ' +
            'can be removed. null: SECRET_KEY_PREVIOUS is not set',
        },
      ),
    ),
  },
  { title: 'Health' },
);

export const Statistics = Type.Object(
  {
    endpoints_total: Type.Integer(),
    endpoints_running: Type.Integer({ description: 'Endpoints that a live gateway runs a process for' }),
    requests_handled: Type.Integer({ description: 'Requests all gateways have handled, ever' }),
    uptime_seconds: Type.Integer({ description: 'Uptime of the process that answers' }),
  },
  { title: 'Statistics' },
);

export const NODE_KINDS = ['web', 'worker', 'gateway', 'actor-host'] as const;

export const Nodes = Type.Object(
  {
    nodes: Type.Array(
      Type.Object(
        {
          id: Id,
          kind: oneOf(NODE_KINDS),
          hostname: Type.String(),
          pid: Type.Integer(),
          sandbox: nullable(
            Type.String({ description: 'How it confines untrusted code; null: it runs none' }),
          ),
          started_at: Timestamp,
        },
        { title: 'Node' },
      ),
      { description: 'Those with a heartbeat in the last seconds' },
    ),
    queues: nullable(
      Type.Array(Type.Object({ queue: Type.String(), state: Type.String(), jobs: Type.Integer() }), {
        description: 'Jobs by state; null while the queue cannot be reached',
      }),
    ),
    warnings: Type.Array(Type.String(), {
      description:
        'What the operator should change: an API_KEY that is short, a host name that the API and endpoints share',
    }),
  },
  { title: 'Nodes' },
);
