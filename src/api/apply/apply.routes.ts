/** Installations as files: applies of folders, and exports. */
import { Readable } from 'node:stream';
import { Type } from '@sinclair/typebox';
import type { Folder } from '../../import/folder/folder.js';
import { ownerOfActor } from '../../model/owner.js';
import { contentOf } from '../../model/source-files.js';
import { mapInParts } from '../../util/pauses.js';
import { ownerOf } from '../access/principal.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { readDecompressed } from '../request/decompressed-body.js';
import { Reply } from '../response/reply.js';
import type { ApiContext } from '../route/context.js';
import { defineRoute, type UseOf } from '../route/route.js';
import { isSet } from '../route/schemas.js';
import { ACCEPTED, APPLY_ERRORS } from './applies.routes.js';
import { ApplyView } from './apply.present.js';
import { ApplyQuery, ENVIRONMENT, ExportQuery, ExportView, Files, PlanView } from './apply.schema.js';
import { edgeFileSchema } from './edge-file.js';
import { EXPORT_TURNS, exportedFiles } from './export.js';
import { shownInFull } from './plan.present.js';
import { PLAN_TURNS, planApply, readableObjects } from './plan-apply.js';
import { sourceReader } from './source-trees.js';
import { requireSamePlan, startApply } from './start-apply.js';
import { YamlLists } from './yaml-lists.js';
import { zipOf } from './zip.js';

const tag = 'Apply';
/** The first is what we send. */
export const ZIP_TYPES = ['application/zip', 'application/x-zip-compressed'] as const;

let schema: Record<string, unknown> | undefined;

export const applyRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/edge.schema.json',
    permission: 'authenticated',
    summary: 'Show the JSON Schema of edge.yaml',
    tag,
    envelope: 'bare',
    data: Type.Record(Type.String(), Type.Unknown()),
    handle: async () => {
      schema ??= edgeFileSchema();
      return schema;
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/apply',
    permission: 'endpoints:write',
    summary:
      'Make the installation what a folder of files says, all or nothing; with `dry_run=true`, plan that. With `Prefer: respond-async`, do not wait for it',
    tag,
    query: ApplyQuery,
    body: Type.Object({}),
    streamedBody: { member: 'files', schema: Files, others: ZIP_TYPES, read: readFolder },
    data: Type.Union([ApplyView, PlanView]),
    alternatives: ACCEPTED,
    errors: [
      ...APPLY_ERRORS,
      ...(['invalid_folder', 'apply_conflict', 'body_too_large', 'import_timeout', 'import_memory'] as const),
      ...(['no_disk_space', 'too_many_imports'] as const),
    ],
    handle: async ({ query, content: folder, principal, markAsDryRun, ...request }, deps) => {
      const isDryRun = isSet(query.dry_run);
      if (isDryRun) markAsDryRun();
      const options = { prune: isSet(query.prune), adopt: isSet(query.adopt) };
      const plan = await PLAN_TURNS.run(ownerOfActor(principal.actor), () =>
        planApply(deps, folder, options, principal),
      );
      if (isDryRun) return shownInFull(plan, deps, principal);
      requireSamePlan(plan, query.plan_hash);
      const { contents } = folder;
      const how = { rollbackOf: null, noWait: isSet(query.no_wait), contents };
      return startApply(deps, plan, how, { ...request, principal });
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/export',
    turns: EXPORT_TURNS,
    permission: 'endpoints:read',
    summary: 'Write the installation as files, which change nothing when they are applied: JSON, or a ZIP',
    tag,
    query: ExportQuery,
    data: ExportView,
    zip: true,
    errors: ['secret_key_mismatch', 'not_found', 'busy'],
    handle: async ({ query, principal, prefers }, deps) => {
      const scope = {
        ...(query.domain !== undefined && { domain: query.domain.toLowerCase() }),
        ...(query.stack !== undefined && { stack: query.stack }),
      };
      const owner = ownerOfActor(principal.actor);
      const objects = await readableObjects(deps, principal);
      const files = await exportedFiles(
        objects,
        scope,
        new YamlLists(deps.threads, owner),
        sourceReader(deps, owner),
      );
      if (prefers('application/json', ZIP_TYPES[0]) !== ZIP_TYPES[0]) {
        const shown = await mapInParts(Object.entries(files), ([path, content]) => [
          path,
          content instanceof Uint8Array ? contentOf(Buffer.from(content)) : content,
        ]);
        return new Reply(200, { files: Object.fromEntries(shown) });
      }
      const headers = {
        'Content-Type': ZIP_TYPES[0],
        'Content-Disposition': 'attachment; filename="edge.zip"',
      };
      return new Reply(200, Readable.from(zipOf(files), { objectMode: false }), headers);
    },
  }),
];

/** A ZIP, or JSON with the texts of files. */
function readFolder(
  context: ApiContext,
  { importReader }: ApiDependencies,
  use: UseOf<Folder>,
): Promise<void> {
  const { env } = context.query;
  // The query has passed its schema, unless it appears twice.
  const environment = typeof env === 'string' && new RegExp(ENVIRONMENT).test(env) ? env : null;
  const isZip = Boolean(context.request.is([...ZIP_TYPES]));
  return readDecompressed(context, async (body) => {
    // An apply waits for long, and keeps no reader from others meanwhile.
    const folder = await importReader.readFolder(
      ownerOf(context),
      body,
      { isZip, environment },
      async (read) => read,
    );
    await use({}, folder);
  });
}
