/** Classifies the files of a bundle: document, manifest, Rust, and files that only look like one of these. */
import { isRust } from '../../model/file-paths.js';
import { type ImportWarning, Warnings } from '../warnings.js';
import type { ArchiveFile } from './archive.js';

export interface Contents {
  /** All files, by their paths below the folder that contains them all. */
  readonly files: ReadonlyMap<string, ArchiveFile>;
  readonly spec: ArchiveFile | null;
  readonly manifest: ArchiveFile | null;
  /** Files of Rust: handlers and their modules. */
  readonly sources: readonly ArchiveFile[];
  /** Files that look like a document or manifest but have a name that is not read. */
  readonly misnamed: readonly string[];
  readonly warnings: readonly ImportWarning[];
}

/** Names of the document at the root of a bundle, by priority. */
export const SPEC_NAMES: readonly string[] = [
  ...['openapi.yaml', 'openapi.json', 'api.yaml', 'spec.yaml'],
  ...['openapi.yml', 'api.yml', 'api.json', 'spec.yml', 'spec.json'],
  ...['swagger.yaml', 'swagger.yml', 'swagger.json'],
];
/** Names of the manifest, by priority. */
export const MANIFEST_NAMES: readonly string[] = ['bundle.yaml', 'bundle.yml'];

/** Likely names of documents and manifests. */
const LIKE_SPEC = /(?:^|\/)(?:openapi|api|spec|swagger)\.(?:ya?ml|json)$/i;
const LIKE_MANIFEST = /(?:^|\/)bundle\.(?:ya?ml|json)$|^manifest\.(?:ya?ml|json)$/i;

export function classifyFiles(archive: readonly ArchiveFile[]): Contents {
  const files = withoutSingleFolder(archive.filter(({ path }) => !isMacMetadata(path)));
  const byPath = new Map(files.map((file) => [file.path, file]));
  const specs = SPEC_NAMES.flatMap((name) => byPath.get(name) ?? []);
  const manifests = MANIFEST_NAMES.flatMap((name) => byPath.get(name) ?? []);
  const warnings = new Warnings();
  const misnamed = files
    .filter((file) => !specs.includes(file) && !manifests.includes(file))
    .map(({ path }) => path)
    .filter((path) => LIKE_SPEC.test(path) || LIKE_MANIFEST.test(path));
  for (const [first, ...others] of [specs, manifests]) {
    for (const { path } of others)
      warnings.add('files', `${path} is not read: ${first?.path} takes precedence.`);
  }
  // Beside a document, one in a folder may be a part of it.
  const mistaken = misnamed.filter(
    (path) => specs.length === 0 || !LIKE_SPEC.test(path) || !path.includes('/'),
  );
  for (const path of mistaken) warnings.add('files', `${path} is not read: ${acceptedNames(path)}.`);
  return {
    files: byPath,
    spec: specs[0] ?? null,
    manifest: manifests[0] ?? null,
    sources: files.filter(({ path }) => isRust(path)),
    misnamed,
    warnings: warnings.list(),
  };
}

function acceptedNames(path: string): string {
  return LIKE_SPEC.test(path)
    ? `a document must be named ${SPEC_NAMES.join(', ')} and be at the root`
    : `the manifest must be named ${MANIFEST_NAMES.join(' or ')} and be at the root`;
}

/** Files that macOS adds to archives and to drives. */
function isMacMetadata(path: string): boolean {
  return path.startsWith('__MACOSX/') || /(?:^|\/)(?:\.DS_Store|\._[^/]*)$/.test(path);
}

/** Strips the folder that contains all files, if there is one. */
function withoutSingleFolder(files: readonly ArchiveFile[]): readonly ArchiveFile[] {
  const folder = files[0]?.path.split('/', 1)[0] ?? '';
  const prefix = `${folder}/`;
  if (!files.every(({ path }) => path.startsWith(prefix))) return files;
  return files.map((file) => ({ ...file, path: file.path.slice(prefix.length) }));
}
