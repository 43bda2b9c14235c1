/** `edge export --openapi`: writes the endpoints of a host as OpenAPI documents. */
import { basename, dirname, extname, join, resolve } from 'node:path';
import { CliError, UsageError } from '../errors.js';
import { writeFiles } from '../files.js';
import type { OpenApiExport } from '../generated/routes.js';
import { idOf } from '../names.js';
import type { Session } from '../session.js';
import { safeLine } from '../text.js';

type Exported = OpenApiExport['documents'][number];

export interface OpenApiExportOptions {
  readonly domain: string;
  readonly collection: string | undefined;
  /** A file, or a folder for any number of documents. */
  readonly output: string | undefined;
  readonly force: boolean;
}

export async function exportOpenApi(session: Session, options: OpenApiExportOptions): Promise<void> {
  const { domain, collection, output, force } = options;
  const { out } = session;
  const collection_id = collection === undefined ? undefined : await idOf(session, 'collection', collection);
  const { data, warnings } = await session.api.call('GET /api/export/openapi', {
    query: { domain, ...(collection_id !== undefined && { collection_id }) },
  });
  const { documents } = data as OpenApiExport;
  out.warnings(warnings);
  if (documents.length === 0)
    throw new CliError(`${safeLine(domain)} has no endpoints that a document could have`, {
      code: 'nothing_to_export',
    });
  if (output === undefined) {
    if (!out.json) requireOne(documents);
    out.result(data, () => out.raw(jsonOf(documents[0]?.document)));
  } else {
    const folder = isFile(output) ? dirname(output) : output;
    const files = isFile(output) ? { [basename(output)]: await only(documents, output) } : named(documents);
    const paths = writeFiles(folder, files, force);
    out.result({ folder: resolve(folder), files: paths }, () => {
      for (const path of paths) out.line(safeLine(join(folder, path)));
    });
  }
  if (!out.json) for (const document of documents) out.note(howToImport(document, domain));
}

function isFile(path: string): boolean {
  return ['.json', '.yaml', '.yml'].includes(extname(path).toLowerCase());
}

async function only(documents: readonly Exported[], file: string): Promise<string> {
  requireOne(documents);
  const document = documents[0]?.document;
  if (extname(file).toLowerCase() === '.json') return jsonOf(document);
  const { stringify } = await import('yaml');
  return stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
}

function requireOne(documents: readonly Exported[]): void {
  if (documents.length === 1) return;
  const names = documents.map((document) => `"${titleOf(document)}"`).join(', ');
  throw new UsageError(
    `There are ${documents.length} documents: ${names}`,
    'Give -o DIR for all of them, or --collection HOST/NAME for one.',
  );
}

/** One file each, named as people know it. */
function named(documents: readonly Exported[]): Record<string, string> {
  const files: Record<string, string> = {};
  const usedPaths = new Set<string>();
  for (const document of documents) {
    const name =
      titleOf(document)
        .replace(/[^\p{L}\p{N}._-]+/gu, '-')
        .replace(/^[.-]+|[.-]+$/g, '') || 'openapi';
    let path = `${name.slice(0, 100)}.json`;
    // On some file systems, names differ by more than their case.
    for (let count = 2; usedPaths.has(path.toLowerCase()); count++)
      path = `${name.slice(0, 100)}-${count}.json`;
    usedPaths.add(path.toLowerCase());
    files[path] = jsonOf(document.document);
  }
  return files;
}

function titleOf({ collection, document }: Exported): string {
  const { title } = (document['info'] ?? {}) as { readonly title?: unknown };
  return safeLine(collection?.name ?? (typeof title === 'string' ? title : 'openapi'));
}

/** The command that changes nothing. */
function howToImport({ collection, validate, document }: Exported, host: string): string {
  // A collection of all hosts is in the domain of one of them.
  const named = collection && (host === '*' ? collection.id : `"${safeLine(`${host}/${collection.name}`)}"`);
  const options = [
    ...['--domain', host],
    ...(named ? ['--collection', named] : []),
    ...(validate === 'off' ? [] : ['--validate', validate]),
  ];
  return `${titleOf({ collection, validate, document })}: edge import openapi FILE ${options.join(' ')} changes nothing.`;
}

function jsonOf(document: unknown): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}
