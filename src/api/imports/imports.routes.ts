/** Bulk import of OpenAPI documents and bundles, and the progress of imports. */
import { randomUUID } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { AppError, requireFound } from '../../errors.js';
import type { ImportedApi } from '../../import/imported-api.js';
import { ownerOfActor } from '../../model/owner.js';
import { policyLimit } from '../../model/policies/room.js';
import { VALIDATE_MODES, type ValidateMode } from '../../model/policies/validate.js';
import { type AppliedImport, applyImport, planImport } from '../../store/apply-import.js';
import { countHandlers, handlersOf } from '../../store/import-handlers.js';
import { findImport } from '../../store/imports.js';
import { ownerOf } from '../access/principal.js';
import { readDecompressed } from '../request/decompressed-body.js';
import type { FormFile } from '../request/form.js';
import { progressReply } from '../response/progress-events.js';
import { acceptedHeaders, prefersAsync, Reply } from '../response/reply.js';
import { defineRoute, type UseOf } from '../route/route.js';
import { IdParams, isSet } from '../route/schemas.js';
import { auditedImport, awaitImport, startBundleImport } from './bundle.js';
import { requireCratesOf } from './crates.js';
import { importSource } from './imports.events.js';
import { presentImport, presentOpenApiImport, presentPlan, presentWarnings } from './imports.present.js';
import {
  BundleForm,
  BundleImported,
  BundleQuery,
  ImportAccepted,
  ImportPlan,
  ImportView,
  OpenApiImport,
  OpenApiImported,
  OpenApiQuery,
  Spec,
} from './imports.schema.js';
import { requireMayImport, targetOf } from './target.js';

const tag = 'Import';

export const importRoutes = [
  defineRoute({
    method: 'POST',
    path: '/api/import/openapi',
    permission: 'imports:write',
    summary: 'Create or update the endpoints of an OpenAPI document, all or none',
    tag,
    query: OpenApiQuery,
    body: OpenApiImport,
    streamedBody: {
      member: 'spec',
      schema: Spec,
      read: (context, { importReader }, use: UseOf<ImportedApi>) =>
        readDecompressed(context, (body) =>
          importReader.readRequest(
            ownerOf(context),
            body,
            ({ fields, api }) => use(fields, api),
            validationOf(context.query['validate']),
          ),
        ),
    },
    data: Type.Union([OpenApiImported, ImportPlan]),
    errors: [
      'invalid_spec',
      'not_found',
      'domain_mismatch',
      'route_taken',
      'import_busy',
      'import_timeout',
      'import_memory',
      'too_many_imports',
      'busy',
    ],
    handle: async (
      { query, body, content: api, id: request_id, principal, addAuditDetails, markAsDryRun },
      { store, config },
    ) => {
      const target = targetOf('body', body, body.create_collection ?? false);
      requireMayImport(principal, 'body', { ...target, compile: false });
      if (isSet(query.dry_run)) {
        markAsDryRun();
        return planned(await planImport(store, target, api, policyLimit(config)));
      }
      const owner = ownerOfActor(principal.actor);
      const record = { id: randomUUID(), compile: false, start: false, request_id, principal: owner };
      const { outcome } = await applyImport(store, target, api, record, policyLimit(config));
      addAuditDetails(auditedImport(record.id, target, outcome));
      return new Reply(200, presentOpenApiImport(record.id, outcome), {}, presentWarnings(outcome));
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/import/bundle',
    permission: 'imports:write',
    summary:
      'Create or update the endpoints of a ZIP bundle, compile and start its handlers; with `Prefer: respond-async`, do not wait for these',
    tag,
    query: BundleQuery,
    form: BundleForm,
    formLimit: 'BUNDLE_LIMIT_BYTES',
    formFiles: 1,
    formRoom: 'imports',
    data: Type.Union([BundleImported, ImportPlan]),
    alternatives: {
      202: { description: 'The import is running; `Location` is its URL', data: ImportAccepted },
    },
    errors: [
      'invalid_bundle',
      'invalid_spec',
      'invalid_dependency',
      'no_disk_space',
      'not_found',
      'domain_mismatch',
      'route_taken',
      'body_too_large',
      'unsupported_media_type',
      'import_busy',
      'import_timeout',
      'import_memory',
      'too_many_imports',
      'busy',
      'no_worker',
      'no_gateway',
      'wait_timeout',
    ],
    handle: async (
      { query, form, id: requestId, header, log, principal, addAuditDetails, markAsDryRun },
      deps,
    ) => {
      const target = targetOf('query', query, isSet(query.create_collection));
      const compile = isSet(query.compile);
      const start = isSet(query.start);
      if (start && !compile) {
        throw new AppError(
          'invalid_input',
          'query.start: needs compile=true; only compiled handlers can start',
        );
      }
      requireMayImport(principal, 'query', { ...target, compile });
      const file = bundleFile(form);
      const owner = ownerOfActor(principal.actor);
      const validation = validationOf(query.validate);
      if (isSet(query.dry_run)) {
        markAsDryRun();
        return planned(
          await deps.importReader.readBundle(
            owner,
            file.path,
            async (api) => {
              requireCratesOf(api, deps.config);
              return planImport(deps.store, target, api, policyLimit(deps.config));
            },
            validation,
          ),
        );
      }
      const isAwaited = !(compile && prefersAsync(header));
      const options = { compile, start, isAwaited };
      const request = { id: requestId, principal: owner, log, addAuditDetails };
      const id = await deps.importReader.readBundle(
        owner,
        file.path,
        (api) => startBundleImport(deps, target, api, options, request),
        validation,
      );
      // No longer needed, while compiling the handlers may take minutes.
      await file.remove();
      if (!isAwaited) {
        const accepted = { import_id: id, status: 'queued' };
        return new Reply(202, accepted, acceptedHeaders(`/api/imports/${id}`));
      }
      const { result, warnings } = await awaitImport(deps, id);
      return new Reply(200, result, {}, warnings);
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/imports/{id}',
    permission: 'imports:read',
    summary: 'Show the progress and the result of an import',
    tag,
    params: IdParams,
    data: ImportView,
    handle: async ({ params: { id } }, { store }) => {
      const imported = requireFound(await findImport(store, id), 'import', id);
      return presentImport(imported, await handlersOf(store, id), await countHandlers(store, id));
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/imports/{id}/events',
    permission: 'imports:read',
    summary: 'Follow an import: server-sent events `progress`, with the handlers that changed, then `done`',
    tag,
    params: IdParams,
    envelope: 'bare',
    data: Type.String({ description: 'Server-sent events' }),
    produces: 'text/event-stream',
    alternatives: {
      204: { description: 'The client has received the event `done`; browsers stop reconnecting' },
    },
    handle: ({ params: { id }, ...request }, deps) =>
      progressReply(deps, request, importSource(deps.store, id)),
  }),
];

function bundleFile({ bundle, file, zip }: { bundle?: FormFile; file?: FormFile; zip?: FormFile }): FormFile {
  const sent = bundle ?? file ?? zip;
  if (!sent) {
    throw new AppError(
      'invalid_input',
      'form.bundle: is required, a part with a ZIP file and its file name; it may also be named `file` or `zip`',
    );
  }
  return sent;
}

function planned(plan: AppliedImport): Reply {
  return new Reply(200, presentPlan(plan), {}, plan.outcome.warnings);
}

/** Before the query is checked, it may be anything. */
function validationOf(mode: unknown): ValidateMode {
  return VALIDATE_MODES.find((one) => one === mode) ?? 'off';
}
