/** Converts rows of imports to API responses. */
import type { Static } from '@sinclair/typebox';
import { moreText, type WarningKind } from '../../import/warnings.js';
import type { AppliedImport } from '../../store/apply-import.js';
import type { ImportHandler, ImportHandlerCounts } from '../../store/import-handlers.js';
import type { Import, ImportOutcome } from '../../store/imports.js';
import type {
  BundleImported,
  HandlerView,
  ImportPlan,
  ImportView,
  OpenApiImported,
} from './imports.schema.js';

type ImportErrors = Static<typeof BundleImported>['errors'];

/** Warnings of each kind that the answer to an import lists; `GET /api/imports/{id}` lists all. */
const LISTED_PER_KIND = 50;

/** The first warnings of each kind, and how many more there are, so that no kind hides another. */
export function presentWarnings({ warnings, warning_kinds: kinds }: ImportOutcome): string[] {
  const groups = new Map<string | undefined, string[]>();
  warnings.forEach((text, at) => {
    const kind = kinds?.[at];
    const group = groups.get(kind) ?? [];
    groups.set(kind, group);
    group.push(text);
  });
  return [...groups].flatMap(([kind, texts]) => {
    const more = kind === undefined ? 0 : texts.length - LISTED_PER_KIND;
    return more > 0 ? [...texts.slice(0, LISTED_PER_KIND), moreText(kind as WarningKind, more)] : texts;
  });
}

/** @param id of the import */
export function presentOpenApiImport(id: string, outcome: ImportOutcome): Static<typeof OpenApiImported> {
  return {
    import_id: id,
    collection: outcome.collection,
    endpoints_created: outcome.created,
    endpoints_updated: outcome.updated,
    endpoints: outcome.endpoints.map(({ id, name, path, method }) => ({ id, name, path, method })),
  };
}

/** The kinds of warnings that name operations which are left out. */
const LEFT_OUT: readonly (string | undefined)[] = ['left-out', 'routes'] satisfies WarningKind[];

/** The response to a dry run. */
export function presentPlan({ outcome, isNewCollection }: AppliedImport): Static<typeof ImportPlan> {
  const { collection, created, updated, endpoints, warnings, warning_kinds: kinds } = outcome;
  return {
    dry_run: true,
    collection: collection && { ...collection, id: isNewCollection ? null : collection.id },
    endpoints_created: created,
    endpoints_updated: updated,
    endpoints: endpoints.map(({ id, name, path, method, change, code, handler }) => ({
      id: change === 'created' ? null : id,
      name,
      path,
      method,
      change,
      code,
      handler,
    })),
    left_out: warnings.filter((_, at) => LEFT_OUT.includes(kinds?.[at])),
    errors: presentErrors(outcome, []).map((error) => ({ ...error, endpoint_id: null })),
  };
}

/** The response to a bundle import, after the import has ended. */
export function presentResult(
  { id, outcome, statuses }: Import,
  handlers: readonly ImportHandler[],
): Static<typeof BundleImported> {
  return {
    import_id: id,
    collection: outcome.collection,
    endpoints_created: outcome.created,
    endpoints_updated: outcome.updated,
    handlers_matched: outcome.endpoints.filter(({ handler }) => handler !== null).length,
    compiled: handlers.filter(wasCompiled).length,
    started: handlers.filter(({ state }) => state === 'started').length,
    // Endpoints that were deleted during the import have no status.
    endpoints: outcome.endpoints.flatMap((endpoint) => {
      const status = statuses?.[endpoint.id];
      return status === undefined ? [] : [{ ...presentEndpoint(endpoint), status }];
    }),
    errors: presentErrors(outcome, handlers),
  };
}

export function presentImport(
  imported: Import,
  handlers: readonly ImportHandler[],
  counts: ImportHandlerCounts,
): Static<typeof ImportView> {
  return {
    id: imported.id,
    state: imported.state,
    title: imported.title,
    compile: imported.compile,
    start: imported.start,
    counts,
    handlers: handlers.map(presentHandler),
    warnings: [...imported.outcome.warnings],
    errors: presentErrors(imported.outcome, handlers),
    result: imported.finished_at && presentResult(imported, handlers),
    request_id: imported.request_id,
    created_at: imported.created_at.toISOString(),
    finished_at: imported.finished_at?.toISOString() ?? null,
  };
}

export function presentHandler(handler: ImportHandler): Static<typeof HandlerView> {
  return {
    endpoint_id: handler.endpoint_id,
    name: handler.name,
    handler: handler.file,
    state: handler.state,
    stage: handler.stage,
    message: handler.message,
    build_id: handler.build_id,
    attempt: handler.attempt,
  };
}

function presentEndpoint({ id, name, path, method, handler }: ImportOutcome['endpoints'][number]) {
  return { id, name, path, method, handler };
}

function presentErrors(outcome: ImportOutcome, handlers: readonly ImportHandler[]): ImportErrors {
  const unmatched = outcome.problems.map(({ endpoint_id, name, handler, message }) => ({
    stage: 'match' as const,
    endpoint_id,
    name,
    handler,
    message,
  }));
  const failed = handlers.flatMap(({ state, stage, endpoint_id, name, file, message }) =>
    state === 'failed' && stage !== null
      ? [{ stage, endpoint_id, name, handler: file, message: message ?? 'It failed.' }]
      : [],
  );
  return [...unmatched, ...failed];
}

function wasCompiled({ state, stage }: ImportHandler): boolean {
  return state === 'compiled' || state === 'starting' || state === 'started' || stage === 'start';
}
