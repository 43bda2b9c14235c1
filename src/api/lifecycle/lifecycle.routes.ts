/** Compile, start and stop: the explicit steps from source to a live endpoint. */
import { Type } from '@sinclair/typebox';
import { awaitBuild, startCompile } from '../../lifecycle/compile.js';
import { startEndpoint, stopEndpoint } from '../../lifecycle/run.js';
import { ownerOfActor } from '../../model/owner.js';
import { Preparation } from '../../model/preparation.js';
import { findEndpoint, needsCompile } from '../../store/endpoints.js';
import { livePreparations } from '../../store/nodes.js';
import { acceptedHeaders, prefersAsync, Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { Id, IdParams, optional, Update } from '../route/schemas.js';
import { unboundPools, unboundPoolsOf } from './unbound-pools.js';

const tag = 'Endpoints';

const Compile = Type.Object(optional({ update: Update }));

const Compiled = Type.Object(
  {
    status: Type.Literal('compiled'),
    message: Type.String(),
    build_id: Id,
    cached: Type.Boolean({ description: 'True when the same code had been compiled before' }),
    warnings: Type.Integer({ description: 'Warnings of the compiler; the build has them' }),
  },
  { title: 'Compiled' },
);
const Accepted = Type.Object(
  {
    build_id: Id,
    status: Type.Literal('queued'),
    preparing: Type.Optional(
      Type.Array(Preparation, {
        description: 'What workers build before they can compile; left out if nothing',
      }),
    ),
  },
  { title: 'CompileAccepted' },
);

const olderThanCode = (version: number | null) =>
  `The code has changed since version ${version}, which runs now, was compiled: ` +
  'compile and start again, or deploy, to run the new code.';

export const lifecycleRoutes = [
  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/compile',
    permission: 'endpoints:deploy',
    summary: 'Compile the code; with `Prefer: respond-async`, answer at once',
    tag,
    params: IdParams,
    body: Compile,
    isBodyOptional: true,
    data: Compiled,
    alternatives: { 202: { description: 'The build continues; `Location` shows it', data: Accepted } },
    errors: [
      'endpoint_has_no_code',
      'invalid_dependency',
      'compile_failed',
      'compile_timeout',
      'crates_timeout',
      'build_cancelled',
      'no_disk_space',
      'queue_unavailable',
      'queue_full',
      'artifact_store_unavailable',
      'no_worker',
      'wait_timeout',
    ],
    handle: async ({ params, body: { update }, origin, header }, deps) => {
      const isAwaited = !prefersAsync(header);
      const buildId = await startCompile(deps, params.id, origin, isAwaited, update);
      if (!isAwaited) {
        const preparing = await livePreparations(deps.store);
        const accepted = { build_id: buildId, status: 'queued', ...(preparing.length > 0 && { preparing }) };
        return new Reply(202, accepted, acceptedHeaders(`/api/builds/${buildId}`));
      }
      const { COMPILE_WAIT_MS } = deps.config;
      const build = await awaitBuild(deps, buildId, params.id, COMPILE_WAIT_MS, deps.waitsEnd);
      const { cached, diagnostics } = build;
      const message = cached
        ? 'Compiled successfully (the same code had been compiled before)'
        : 'Compiled successfully';
      const compiled = {
        status: 'compiled' as const,
        message,
        build_id: buildId,
        cached,
        warnings: diagnostics.length,
      };
      const warnings = await unboundPools(deps, params.id, build, ownerOfActor(origin.actor));
      return new Reply(200, compiled, {}, warnings);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/start',
    permission: 'endpoints:deploy',
    summary: 'Run the newest version on all gateways; a running one is replaced without losing a request',
    tag,
    params: IdParams,
    data: Type.Object({ status: Type.Literal('running'), pid: Type.Integer() }, { title: 'Started' }),
    errors: ['endpoint_not_compiled', 'handler_start_failed', 'no_gateway', 'start_overtaken'],
    handle: async ({ params, origin }, deps) => {
      const { pid } = await startEndpoint(deps, params.id, origin);
      const endpoint = await findEndpoint(deps.store, params.id);
      const owner = ownerOfActor(origin.actor);
      const warnings = await unboundPoolsOf(deps, params.id, endpoint?.latest_version, owner);
      if (endpoint && needsCompile(endpoint)) warnings.unshift(olderThanCode(endpoint.latest_version));
      return new Reply(200, { status: 'running', pid }, {}, warnings);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/stop',
    permission: 'endpoints:deploy',
    summary: 'Finish the requests in flight and end the handler on all gateways',
    tag,
    params: IdParams,
    data: Type.Object({ status: Type.Literal('stopped') }, { title: 'Stopped' }),
    errors: ['endpoint_not_running', 'wait_timeout'],
    handle: async ({ params, origin }, deps) => {
      await stopEndpoint(deps, params.id, origin);
      return { status: 'stopped' as const };
    },
  }),
];
