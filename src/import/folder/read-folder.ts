/**
 * Reads a folder that describes an installation: a ZIP, or JSON with its files. `edge.yaml` and all `edge/*.yaml` are
 * merged in this order, then the overlay `edge.ENVIRONMENT.yaml`; of other files, only those of the sources
 * count that these name.
 */
import { readFile } from 'node:fs/promises';
import { AppError, toError } from '../../errors.js';
import { isBase64 } from '../../model/formats.js';
import { bytesOf, type FileContent } from '../../model/source-files.js';
import { isObject } from '../../util/json-object.js';
import { openArchive, readOnce } from '../bundle/archive.js';
import { entryPath } from '../bundle/entry-path.js';
import type { ImportLimits } from '../limits.js';
import { parseYaml, YamlError } from '../yaml.js';
import { folderError } from './errors.js';
import type { Folder } from './folder.js';
import { mergedFiles, type ParsedFile } from './merged-files.js';
import { readSources } from './read-sources.js';

export interface FolderToRead {
  /** Path of the ZIP, or of the JSON. */
  readonly file: string;
  readonly isZip: boolean;
  /** The overlay to merge. */
  readonly environment: string | null;
}

/** A file of the folder, read when it is needed. */
type ReadFile = () => Promise<Buffer>;

const YAML_LIMITS = { depth: 128, aliases: 1_000 };
const MAIN = 'edge.yaml';
const FURTHER = /^edge\/[^/]+\.yaml$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @throws AppError invalid_folder, body_too_large */
export async function readFolder(
  { file, isZip, environment }: FolderToRead,
  limits: ImportLimits,
): Promise<Folder> {
  const files = isZip ? await filesOfZip(file, limits) : await filesOfJson(file, limits);
  const names = [...files.keys()].filter((name) => name === MAIN || FURTHER.test(name)).sort(inOrder);
  if (names.length === 0) throw folderError([`There is no ${MAIN} in the folder, and no YAML file in edge/`]);
  const overlay = environment === null ? undefined : `edge.${environment}.yaml`;
  if (overlay !== undefined && !files.has(overlay))
    throw folderError([
      `There is no ${overlay} in the folder, the overlay of the environment "${environment}"`,
    ]);
  const parse = async (name: string) => parsedFile(name, await textOf(files, name, limits.specBytes));
  const parsed: ParsedFile[] = [];
  for (const name of names) parsed.push(await parse(name));
  const document = mergedFiles(parsed, overlay === undefined ? undefined : await parse(overlay));
  for (const [name, { length }] of Object.entries(document.lists))
    if (length > limits.operations)
      throw folderError([
        `The folder has ${length} ${name}; at most ${limits.operations} are allowed (IMPORT_OPERATIONS_LIMIT)`,
      ]);
  const sources = await readSources(
    document.lists['endpoints'] ?? [],
    {
      paths: [...files.keys()],
      read: readOnce((path) => files.get(path)?.()),
      readCode: async (path) => (files.has(path) ? textOf(files, path, limits.codeBytes) : undefined),
    },
    { files: limits.sourceFiles, bytes: limits.codeBytes },
  );
  return { ...document, ...sources };
}

/** `edge.yaml` first. */
function inOrder(left: string, right: string): number {
  if (left === MAIN || right === MAIN) return left === MAIN ? -1 : 1;
  return left < right ? -1 : 1;
}

function parsedFile(name: string, text: string): ParsedFile {
  try {
    const { value, locationOf } = parseYaml(text, YAML_LIMITS);
    return { name, value, lineOf: (path) => Number(/\d+/.exec(locationOf(path))?.[0] ?? 1) };
  } catch (thrown) {
    if (!(thrown instanceof YamlError)) throw thrown;
    const line = /\d+/.exec(thrown.location ?? '')?.[0];
    throw folderError([`${name}${line === undefined ? '' : `:${line}`}: the file ${thrown.message}`], thrown);
  }
}

async function textOf(files: ReadonlyMap<string, ReadFile>, name: string, limit: number): Promise<string> {
  const bytes = (await files.get(name)?.()) ?? Buffer.alloc(0);
  if (bytes.length > limit)
    throw new AppError('body_too_large', `${name} has ${bytes.length} bytes; at most ${limit} are allowed`);
  try {
    return utf8.decode(bytes);
  } catch (thrown) {
    throw folderError([`${name}: is not UTF-8; save it as UTF-8`], thrown);
  }
}

async function filesOfZip(file: string, limits: ImportLimits): Promise<ReadonlyMap<string, ReadFile>> {
  try {
    const archive = await openArchive(file, limits);
    // Tools that pack a folder often put the folder itself into the archive.
    const folder =
      archive.find(({ path }) => /^[^/]+\/edge\.yaml$/.test(path))?.path.slice(0, -MAIN.length) ?? '';
    const isInside = folder !== '' && archive.every(({ path }) => path.startsWith(folder));
    return new Map(archive.map(({ path, read }) => [isInside ? path.slice(folder.length) : path, read]));
  } catch (thrown) {
    if (thrown instanceof AppError && thrown.code === 'invalid_bundle')
      throw folderError([thrown.message], thrown);
    throw thrown;
  }
}

async function filesOfJson(file: string, limits: ImportLimits): Promise<ReadonlyMap<string, ReadFile>> {
  const files = filesIn(await readFile(file, 'utf8'));
  if (files.length > limits.entries)
    throw folderError([
      `The folder has ${files.length} files; at most ${limits.entries} are allowed (BUNDLE_ENTRIES_LIMIT)`,
    ]);
  const read = new Map<string, ReadFile>();
  for (const [name, content] of files) {
    if (!isContent(content))
      throw folderError([`body.files: "${name}" must be a text, or {"base64": ...} with its bytes`]);
    const { path } = pathOf(name);
    if (read.has(path)) throw folderError([`body.files: "${path}" occurs twice`]);
    read.set(path, async () => bytesOf(content));
  }
  return read;
}

function isContent(value: unknown): value is FileContent {
  return typeof value === 'string' || (isObject(value) && isBase64(value['base64']));
}

function filesIn(text: string): [string, unknown][] {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (thrown) {
    throw new AppError(
      'invalid_json',
      `The body is not valid JSON: ${toError(thrown).message}`,
      {},
      { cause: thrown },
    );
  }
  const files = typeof body === 'object' && body !== null ? (body as { files?: unknown }).files : undefined;
  if (typeof files !== 'object' || files === null || Array.isArray(files))
    throw new AppError('invalid_input', 'body.files: is required, an object with the files by their paths');
  return Object.entries(files);
}

function pathOf(name: string): { readonly path: string } {
  try {
    return entryPath(Buffer.from(name));
  } catch (thrown) {
    if (thrown instanceof AppError) throw folderError([`body.files: ${thrown.message}`], thrown);
    throw thrown;
  }
}
