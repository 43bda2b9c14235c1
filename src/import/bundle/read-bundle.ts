/**
 * Reads a bundle: a ZIP archive with an OpenAPI document or a manifest with routes, or both, and handlers. What comes out
 * is whole and checked; the archive is left as it is, and nothing else is written.
 */
import { AppError } from '../../errors.js';
import { generateHandler } from '../handler-source/generate-handler.js';
import type { ImportedApi, ImportedEndpoint, ImportedHandler } from '../imported-api.js';
import type { OpenApiDocument, Operation } from '../openapi/document.js';
import { readOpenApi } from '../openapi/read-openapi.js';
import { Warnings } from '../warnings.js';
import { type ArchiveFile, openArchive } from './archive.js';
import { assignHandlers } from './assign-handlers.js';
import { type Contents, type HandlerFile, MANIFEST_NAME, SPEC_NAMES, sortContents } from './contents.js';
import { type Manifest, readManifest } from './manifest.js';
import { planOperations } from './plan-operations.js';
import { readText } from './read-text.js';

export interface BundleLimits {
  /** Most files and folders in the archive. */
  readonly entries: number;
  /** Most that all files together may unpack to, bytes. */
  readonly unpackedBytes: number;
  /** Largest document, bytes. */
  readonly specBytes: number;
  /** Most operations of document and manifest together. */
  readonly operations: number;
  /** Largest handler, bytes. */
  readonly codeBytes: number;
}

const MANIFEST_BYTES = 1024 * 1024;
/** What a bundle is called that has neither a document nor a name. */
const UNNAMED = 'Bundle';

/**
 * Reads the bundle in this file.
 * @throws AppError invalid_bundle, invalid_spec, invalid_dependency, body_too_large
 */
export async function readBundle(file: string, limits: BundleLimits): Promise<ImportedApi> {
  const contents = sortContents(await openArchive(file, limits));
  const manifest = contents.manifest && readManifest(await readText(contents.manifest, MANIFEST_BYTES));
  const document = contents.spec && (await readDocument(contents.spec, limits));
  const title = document?.title ?? titleOf(manifest, contents);
  const planned = planOperations(document, manifest?.routes ?? []);
  if (planned.length > limits.operations) throw tooManyOperations(planned.length, limits.operations);
  const { handlerOf, problems, unused } = assignHandlers(planned, contents.handlers);
  const sources = await readHandlers(contents.handlers, new Set(handlerOf.values()), limits.codeBytes);
  const warnings = new Warnings();
  warnings.addEach('handlers', unused, ({ path }) => `${path} is the handler of no operation.`);
  return {
    title,
    description: document?.description ?? null,
    basePath: document?.basePath ?? null,
    endpoints: planned.map((each) => {
      const handler = handlerOf.get(each);
      return endpointOf(
        each.operation,
        generateHandler(each.operation, title),
        handler && sources.get(handler),
      );
    }),
    dependencies: manifest?.dependencies ?? null,
    warnings: [
      ...warnings.list(),
      ...(manifest?.warnings ?? []),
      ...contents.warnings,
      ...(document?.warnings ?? []),
    ],
    problems,
  };
}

async function readDocument(spec: ArchiveFile, limits: BundleLimits): Promise<OpenApiDocument> {
  const text = await readText(spec, limits.specBytes, 'SPEC_LIMIT_BYTES');
  try {
    return await readOpenApi(text, limits);
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown;
    throw new AppError(thrown.code, `${spec.path}: ${thrown.message}`, thrown.extras, { cause: thrown });
  }
}

/** Without a document, the manifest has to say what the document would. */
function titleOf(manifest: Manifest | null, { misnamed }: Contents): string {
  if (!manifest || manifest.routes.length === 0) {
    const found =
      misnamed.length === 0 ? '' : ` It has ${misnamed.join(', ')}, which is not read under this name.`;
    throw new AppError(
      'invalid_bundle',
      `The bundle has no OpenAPI document and no routes: put ${SPEC_NAMES.join(', ')} at its root, ` +
        `or list routes in ${MANIFEST_NAME}.${found}`,
    );
  }
  return manifest.name ?? UNNAMED;
}

/** All handlers are checked, so that none that is damaged goes unnoticed; only what is used is kept. */
async function readHandlers(
  handlers: readonly HandlerFile[],
  used: ReadonlySet<HandlerFile>,
  limit: number,
): Promise<Map<HandlerFile, ImportedHandler>> {
  const sources = new Map<HandlerFile, ImportedHandler>();
  for (const handler of handlers) {
    const code = await readText(handler, limit, 'API_BODY_LIMIT_BYTES');
    if (used.has(handler)) sources.set(handler, { file: handler.path, code });
  }
  return sources;
}

function endpointOf(
  { name, method, path, description }: Operation,
  generatedCode: string,
  handler: ImportedHandler | undefined,
): ImportedEndpoint {
  return { name, method, path, description, generatedCode, handler: handler ?? null };
}

function tooManyOperations(count: number, limit: number): AppError {
  return new AppError(
    'invalid_bundle',
    `The bundle has ${count} operations; at most ${limit} are allowed (IMPORT_OPERATIONS_LIMIT).`,
  );
}
