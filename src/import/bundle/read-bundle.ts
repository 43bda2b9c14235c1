/** Reads a bundle: a ZIP archive with an OpenAPI document or a manifest with routes, or both, and handlers. */
import { AppError } from '../../errors.js';
import type { ValidateMode } from '../../model/policies/validate.js';
import { endpointOf, type ImportedApi } from '../imported-api.js';
import type { ImportLimits } from '../limits.js';
import type { OpenApiDocument } from '../openapi/document.js';
import { readOpenApi } from '../openapi/read-openapi.js';
import { Warnings } from '../warnings.js';
import { type ArchiveFile, openArchive, readText } from './archive.js';
import { type Contents, classifyFiles, MANIFEST_NAMES, SPEC_NAMES } from './contents.js';
import { bundleError } from './errors.js';
import { findHandlers } from './find-handlers.js';
import { KnownReferences } from './known-references.js';
import { type Manifest, readManifest } from './manifest.js';
import { planOperations } from './plan-operations.js';
import { readHandlers } from './read-handlers.js';

const MANIFEST_BYTES = 1024 * 1024;
/** Title of a bundle without a document and a name. */
const DEFAULT_TITLE = 'Bundle';

/**
 * @param file path of the ZIP archive
 * @throws AppError invalid_bundle, invalid_spec, invalid_dependency, body_too_large
 */
export async function readBundle(
  file: string,
  limits: ImportLimits,
  validation: ValidateMode = 'off',
): Promise<ImportedApi> {
  const contents = classifyFiles(await openArchive(file, limits));
  const manifest =
    contents.manifest &&
    readManifest(await readText(contents.manifest, MANIFEST_BYTES), contents.manifest.path);
  const document = contents.spec && (await readDocument(contents.spec, contents.files, limits, validation));
  const title = document?.title ?? titleOf(manifest, contents);
  const planned = planOperations(document, manifest?.routes ?? []);
  if (planned.length > limits.operations) throw tooManyOperations(planned.length, limits.operations);
  const references = new KnownReferences();
  const found = await findHandlers(planned, contents.sources, limits.codeBytes, references);
  const { handlerOf, handlers, problems } = found;
  const used = new Set(handlerOf.values());
  const {
    sources,
    modules,
    contents: fileContents,
  } = await readHandlers(handlers, used, contents, references, limits);
  const warnings = new Warnings();
  const withoutOperation = found.unused.filter(({ path }) => !modules.has(path));
  warnings.addEach('handlers', withoutOperation, ({ path }) => `${path} is the handler of no operation.`);
  const unread = new Warnings();
  for (const [path, reason] of found.unread)
    if (!modules.has(path)) unread.add('files', `${path} is not read: ${reason}.`);
  return {
    kind: 'bundle',
    title,
    description: document?.description ?? null,
    basePath: document?.basePath ?? null,
    endpoints: planned.map((each) => {
      const handler = handlerOf.get(each);
      return endpointOf(each.operation, title, (handler && sources.get(handler)) ?? null);
    }),
    dependencies: manifest?.dependencies ?? null,
    ...(manifest?.edition && { edition: manifest.edition }),
    bindings: manifest?.bindings ?? [],
    warnings: [
      ...warnings.list(),
      ...(manifest?.warnings ?? []),
      ...contents.warnings,
      ...unread.list(),
      ...(document?.warnings ?? []),
    ],
    ...(validation !== 'off' && { validation }),
    document: document?.kept ?? null,
    problems,
    contents: fileContents,
  };
}

/** The document, and what its references need of other files. */
async function readDocument(
  spec: ArchiveFile,
  files: Contents['files'],
  limits: ImportLimits,
  validation: ValidateMode,
): Promise<OpenApiDocument> {
  const read = (file: ArchiveFile) => readText(file, limits.specBytes, 'SPEC_LIMIT_BYTES');
  const text = await read(spec);
  const readOther = (path: string) => {
    const file = files.get(path);
    return file && read(file);
  };
  try {
    return await readOpenApi(text, { ...limits, validation }, { document: spec.path, readText: readOther });
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown;
    throw new AppError(thrown.code, `${spec.path}: ${thrown.message}`, thrown.extras, { cause: thrown });
  }
}

/** The title of a bundle without a document, which needs routes in its manifest. */
function titleOf(manifest: Manifest | null, { misnamed }: Contents): string {
  if (!manifest || manifest.routes.length === 0) {
    const hint =
      misnamed.length === 0 ? '' : ` It has ${misnamed.join(', ')}, which is not read under this name.`;
    throw bundleError(
      `The bundle has no OpenAPI document and no routes: put ${SPEC_NAMES.slice(0, 4).join(', ')} at its root, ` +
        `or list routes in ${MANIFEST_NAMES[0]}.${hint}`,
    );
  }
  return manifest.name ?? DEFAULT_TITLE;
}

function tooManyOperations(count: number, limit: number): AppError {
  return bundleError(
    `The bundle has ${count} operations; at most ${limit} are allowed (IMPORT_OPERATIONS_LIMIT).`,
  );
}
