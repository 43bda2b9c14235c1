/** Versions of an endpoint, which of them serve, and rollback. */
import { Type } from '@sinclair/typebox';
import { requireFound } from '../../errors.js';
import { ownerOfActor } from '../../model/owner.js';
import { type HandlerSource, SOURCE_MEMBERS } from '../../model/source-files.js';
import { listDeployments } from '../../store/deployments.js';
import { type Endpoint, findEndpoint } from '../../store/endpoints.js';
import { type EndpointVersion, listVersions } from '../../store/versions.js';
import { requirePermission } from '../access/principal.js';
import { admitSource } from '../request/sources.js';
import { presenter } from '../response/present.js';
import { Reply } from '../response/reply.js';
import { sourceWithContents } from '../response/sources.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { IdParams } from '../route/schemas.js';
import { deploySource, rollBack, setDeployment } from './deploy.js';
import { diffOf } from './diff.js';
import { requireVersion } from './find-version.js';
import { unboundPoolsOf } from './unbound-pools.js';
import {
  Deploy,
  Deployed,
  DeploymentSet,
  DeploymentView,
  DiffQuery,
  Rollback,
  RolledBack,
  SetDeployment,
  VersionDiff,
  VersionParams,
  VersionSummary,
  VersionView,
} from './versions.schema.js';

const tag = 'Versions';
const deployErrors = [
  'invalid_dependency',
  'no_gateway',
  'handler_start_failed',
  'start_overtaken',
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
] as const;

const presentSummary = presenter(VersionSummary);
const presentVersion = presenter(VersionView);
const presentDeployment = presenter(DeploymentView);

export const versionRoutes = [
  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/deploy',
    permission: 'endpoints:deploy',
    summary: 'Save, compile and start in one; when something fails, the endpoint is as it was before',
    tag,
    params: IdParams,
    body: Deploy,
    isBodyOptional: true,
    bodyErrors: { dependencies: 'invalid_dependency' },
    data: Deployed,
    errors: [...deployErrors, 'endpoint_has_no_code', 'nothing_deployed'],
    handle: async ({ params, body, origin, principal }, deps) => {
      // It becomes the draft: who may not write that there does not write it here.
      if (SOURCE_MEMBERS.some((member) => member in body)) requirePermission(principal, 'endpoints:write');
      const { id } = params;
      const request = await admitSource(body, deps, async () =>
        requireFound(await findEndpoint(deps.store, id), 'endpoint', id),
      );
      const deployed = await deploySource(deps, id, request, origin);
      const warnings = await unboundPoolsOf(deps, id, deployed.version, ownerOfActor(origin.actor));
      return new Reply(200, deployed, {}, warnings);
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/rollback',
    permission: 'endpoints:deploy',
    summary: 'Run an earlier version: the given one, or the one that served before the current one',
    tag,
    params: IdParams,
    body: Rollback,
    isBodyOptional: true,
    data: RolledBack,
    errors: [...deployErrors, 'nothing_to_roll_back_to'],
    handle: ({ params, body, origin }, deps) => rollBack(deps, params.id, body, origin),
  }),

  defineRoute({
    method: 'PUT',
    path: '/api/endpoints/{id}/deployment',
    permission: 'endpoints:deploy',
    summary: 'Say which versions serve: one, or two that share the requests',
    tag,
    params: IdParams,
    body: SetDeployment,
    data: DeploymentSet,
    errors: deployErrors,
    handle: ({ params, body, origin }, deps) => setDeployment(deps, params.id, body, origin),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/deployments',
    permission: 'endpoints:read',
    summary: 'List the deployments of an endpoint, the newest first',
    tag,
    params: IdParams,
    data: Type.Array(DeploymentView),
    handle: async ({ params: { id } }, { store }) => {
      requireFound(await findEndpoint(store, id), 'endpoint', id);
      const deployments = await listDeployments(store, id);
      return deployments.map((deployment) =>
        presentDeployment({
          ...deployment,
          targets: deployment.targets.map(({ version, percent }) => ({ version, percent })),
          actor: deployment.actor && { ...deployment.actor },
        }),
      );
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/versions',
    permission: 'endpoints:read',
    summary: 'List the versions of an endpoint, the newest first',
    tag,
    params: IdParams,
    query: Type.Object(PageQuery),
    data: Type.Array(VersionSummary),
    handle: async (request, { store }) => {
      const { id } = request.params;
      const endpoint = requireFound(await findEndpoint(store, id), 'endpoint', id);
      const page = await listVersions(store, id, listOptions(request));
      return pageReply(request.raw, page, page.rows, (version) =>
        presentSummary(withShare(version, endpoint)),
      );
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/versions/{version}',
    permission: 'endpoints:read',
    summary: 'Show a version with its code',
    tag,
    params: VersionParams,
    data: VersionView,
    handle: async ({ params: { id, version } }, { store }) => {
      const endpoint = requireFound(await findEndpoint(store, id), 'endpoint', id);
      const stored = await requireVersion(store, id, Number(version));
      const built = { ...stored, lock: stored.lock ?? stored.resolved_lock };
      return presentVersion({ ...withShare(stored, endpoint), ...(await sourceWithContents(store, built)) });
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/endpoints/{id}/versions/{version}/diff',
    permission: 'endpoints:read',
    summary: 'Compare the code, the files, the edition and the dependencies of two versions',
    tag,
    params: VersionParams,
    query: DiffQuery,
    data: VersionDiff,
    errors: ['busy'],
    handle: async ({ params: { id, version }, query, principal }, { store, threads }) => {
      requireFound(await findEndpoint(store, id), 'endpoint', id);
      const from = await requireVersion(store, id, Number(version));
      const to = await requireVersion(store, id, Number(query.to));
      return {
        from: from.version,
        to: to.version,
        ...(await diffOf({ store, threads, owner: ownerOfActor(principal.actor) }, from, to)),
      };
    },
  }),
];

function withShare<V extends Omit<EndpointVersion, keyof HandlerSource>>(
  version: V,
  { deployment }: Endpoint,
) {
  const target = deployment?.targets.find((one) => one.version === version.version);
  return {
    ...version,
    actor: version.actor && { ...version.actor },
    deployed_percent: target?.percent ?? 0,
  };
}
