/** Builds: requested compilations and their outcomes. */
import { Type } from '@sinclair/typebox';
import { AppError, requireFound } from '../../errors.js';
import { Diagnostic } from '../../model/diagnostic.js';
import type { Scope } from '../../model/permission.js';
import { BuildingCrates } from '../../model/preparation.js';
import { cancelBuild } from '../../store/build-attempts.js';
import { cratesOfBuilds } from '../../store/build-crates.js';
import { type Build, findBuild } from '../../store/builds.js';
import type { Store } from '../../store/database.js';
import type { Endpoint } from '../../store/endpoints.js';
import { endpointsOfBuilds, endpointsOfSources, listBuilds } from '../../store/listed-builds.js';
import { presenter } from '../response/present.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { Id, IdParams, nullable, oneOf, optional, Timestamp } from '../route/schemas.js';

const LISTED = 100;
const State = oneOf(['queued', 'running', 'succeeded', 'failed']);

const Endpoints = Type.Array(Type.Object({ id: Id, name: Type.String() }), {
  description: 'Endpoints whose latest build this is, with their names',
});
const OfSource = Type.Array(Type.Object({ id: Id, name: Type.String() }), {
  description:
    'Where it is the latest build of none: endpoints whose code it is, or was in a version; at most 20',
});

const BuildCrates = Type.Omit(BuildingCrates, ['builds'], {
  title: 'BuildCrates',
  description: 'The crates that it waits for, while these are built',
});

const BuildView = Type.Object(
  {
    id: Id,
    state: State,
    cached: Type.Boolean({ description: 'True when no compiler had to run' }),
    attempt: Type.Integer({ description: 'Above 1 when a lost build was queued again' }),
    endpoint_ids: Type.Array(Id, { description: 'Endpoints whose latest build this is' }),
    endpoints: Endpoints,
    of_source: OfSource,
    error: nullable(Type.String({ description: 'Output of the compiler when it refused the code' })),
    error_code: nullable(Type.String()),
    diagnostics: Type.Array(Diagnostic),
    artifact: nullable(Type.String({ description: 'sha256 of the executable' })),
    crates: nullable(BuildCrates),
    timings: Type.Object({
      dependencies_ms: Type.Optional(Type.Integer()),
      compile_ms: Type.Optional(Type.Integer()),
      store_ms: Type.Optional(Type.Integer()),
    }),
    request_id: Type.String({ description: 'Of the API call that asked for it' }),
    created_at: Timestamp,
    started_at: nullable(Timestamp),
    finished_at: nullable(Timestamp),
  },
  { title: 'Build' },
);

const BuildSummary = Type.Pick(
  BuildView,
  [
    ...(['id', 'state', 'cached', 'attempt', 'endpoints', 'of_source', 'error_code', 'artifact'] as const),
    ...(['crates', 'request_id', 'created_at', 'started_at', 'finished_at'] as const),
  ],
  { title: 'BuildSummary' },
);
const presentSummary = presenter(BuildSummary);

export const buildRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/builds',
    permission: 'builds:read',
    summary: `List builds, the newest first; ${LISTED} unless \`limit\` is given`,
    tag: 'Builds',
    query: Type.Object({ ...optional({ state: State }), ...PageQuery }),
    data: Type.Array(BuildSummary),
    handle: async (request, { store }) => {
      const { scope } = request;
      const { state } = request.query;
      const filter = { ...(state !== undefined && { state }) };
      const page = await listBuilds(store, filter, listOptions(request, LISTED));
      const ids = page.rows.map(({ id }) => id);
      const owners = await ownersOf(store, ids, scope);
      const crates = await readCrates(store, page.rows);
      return pageReply(request.raw, page, page.rows, (row) =>
        presentSummary({ ...row, ...owners(row.id), crates: crates(row.id) }),
      );
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/builds/{id}',
    permission: 'builds:read',
    summary: 'Show a build',
    tag: 'Builds',
    params: IdParams,
    data: BuildView,
    handle: ({ params: { id }, scope }, { store }) => readBuild(store, id, scope),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/builds/{id}/cancel',
    permission: 'endpoints:deploy',
    summary: 'End a build that is queued or running; who waits for it gets the error `build_cancelled`',
    tag: 'Builds',
    params: IdParams,
    data: BuildView,
    errors: ['build_ended'],
    handle: async ({ params: { id }, scope }, { store }) => {
      const isCancelled = await cancelBuild(store, id);
      const build = await readBuild(store, id, scope);
      if (isCancelled) return build;
      throw new AppError(
        'build_ended',
        `The build ${id} has ended (${build.state}), so it cannot be cancelled`,
      );
    },
  }),
];

async function readBuild(store: Store, id: string, scope: Scope) {
  const build = requireFound(await findBuild(store, id), 'build', id);
  const owners = await ownersOf(store, [id], scope);
  const crates = await readCrates(store, [build]);
  return presentBuild(build, owners(id), crates(id));
}

/** The crates that builds which have not ended wait for. */
async function readCrates(
  store: Store,
  builds: readonly Pick<Build, 'id' | 'state'>[],
): Promise<(id: string) => Crates> {
  const running = builds.filter(({ state }) => state === 'running').map(({ id }) => id);
  const sets = await cratesOfBuilds(store, running);
  const byBuild = new Map(
    sets.flatMap(({ builds, ...crates }) => builds.map(({ id }) => [id, crates] as const)),
  );
  return (id) => byBuild.get(id) ?? null;
}

type Crates = Omit<BuildingCrates, 'builds'> | null;

interface Owners {
  readonly endpoints: Pick<Endpoint, 'id' | 'name'>[];
  readonly of_source: Pick<Endpoint, 'id' | 'name'>[];
}

/** A build that is deployed from, or was followed by another, is the latest of no endpoint. */
async function ownersOf(store: Store, ids: readonly string[], scope: Scope): Promise<(id: string) => Owners> {
  const latest = await endpointsOfBuilds(store, ids, scope);
  const others = ids.filter((id) => !latest.has(id));
  const ofSource = await endpointsOfSources(store, others, scope);
  return (id) => ({ endpoints: [...(latest.get(id) ?? [])], of_source: [...(ofSource.get(id) ?? [])] });
}

/** Diagnostics stored by earlier versions lack these members. */
const NO_DETAILS = { end_line: null, end_column: null, labels: [], suggestions: [] };

function presentBuild(build: Build, { endpoints, of_source }: Owners, crates: Crates) {
  return {
    id: build.id,
    state: build.state,
    cached: build.cached,
    attempt: build.attempt,
    endpoint_ids: endpoints.map(({ id }) => id),
    endpoints,
    of_source,
    error: build.error,
    error_code: build.error_code,
    diagnostics: build.diagnostics.map((diagnostic) => ({ ...NO_DETAILS, ...diagnostic })),
    artifact: build.artifact,
    crates,
    timings: build.timings,
    request_id: build.request_id,
    created_at: build.created_at.toISOString(),
    started_at: build.started_at?.toISOString() ?? null,
    finished_at: build.finished_at?.toISOString() ?? null,
  };
}
