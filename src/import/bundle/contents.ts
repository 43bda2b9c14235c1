/** Which file of a bundle is what: the document, the manifest, the handlers, and what looks like one but is not read. */
import { type Warn, Warnings } from '../warnings.js';
import type { ArchiveFile } from './archive.js';

export interface Contents {
  readonly spec: ArchiveFile | null;
  readonly manifest: ArchiveFile | null;
  readonly handlers: readonly HandlerFile[];
  /** Documents and manifests under names that are not read, to be told when one is missed. */
  readonly misnamed: readonly string[];
  readonly warnings: readonly string[];
}

export interface HandlerFile extends ArchiveFile {
  /** File name without folder and `.rs`. No two handlers have the same. */
  readonly base: string;
}

/** Names of the document at the root of a bundle; the first that is there is read. */
export const SPEC_NAMES = ['openapi.yaml', 'openapi.json', 'api.yaml', 'spec.yaml'] as const;
export const MANIFEST_NAME = 'bundle.yaml';

/** Folders of handlers; of two with the same base name, the one in the earlier folder is taken. */
const HANDLER_FOLDERS = ['handlers/', '', 'src/'];
const HANDLER_SUFFIX = '.rs';
/** What a person might well call a document or a manifest. */
const LIKE_SPEC = /(?:^|\/)(?:openapi|api|spec|swagger)\.(?:ya?ml|json)$/i;
const LIKE_MANIFEST = /(?:^|\/)bundle\.(?:ya?ml|json)$|^manifest\.(?:ya?ml|json)$/i;

export function sortContents(archive: readonly ArchiveFile[]): Contents {
  const files = withoutSingleFolder(archive.filter(({ path }) => !isMacLitter(path)));
  const byPath = new Map(files.map((file) => [file.path, file]));
  const specs = SPEC_NAMES.flatMap((name) => byPath.get(name) ?? []);
  const manifest = byPath.get(MANIFEST_NAME) ?? null;
  const warnings = new Warnings();
  const misnamed = files
    .filter((file) => !specs.includes(file) && file !== manifest)
    .map(({ path }) => path)
    .filter((path) => LIKE_SPEC.test(path) || LIKE_MANIFEST.test(path));
  for (const { path } of specs.slice(1)) {
    warnings.add('files', `${path} is not read: ${specs[0]?.path} is there too and comes first.`);
  }
  for (const path of misnamed) warnings.add('files', `${path} is not read: ${acceptedNames(path)}.`);
  const handlers = sortHandlers(files, warnings.add);
  return { spec: specs[0] ?? null, manifest, handlers, misnamed, warnings: warnings.list() };
}

function acceptedNames(path: string): string {
  return LIKE_SPEC.test(path)
    ? `a document is named ${SPEC_NAMES.join(', ')} and stands at the root`
    : `the manifest is named ${MANIFEST_NAME} and stands at the root`;
}

/** macOS adds these to the archives it makes, and to the drives it writes to. */
function isMacLitter(path: string): boolean {
  return path.startsWith('__MACOSX/') || /(?:^|\/)(?:\.DS_Store|\._[^/]*)$/.test(path);
}

/** When all files are in one folder, that folder is the bundle. */
function withoutSingleFolder(files: readonly ArchiveFile[]): readonly ArchiveFile[] {
  const folder = files[0]?.path.split('/', 1)[0] ?? '';
  const prefix = `${folder}/`;
  if (!files.every(({ path }) => path.startsWith(prefix))) return files;
  return files.map((file) => ({ ...file, path: file.path.slice(prefix.length) }));
}

function sortHandlers(files: readonly ArchiveFile[], warn: Warn): HandlerFile[] {
  const sources = files.filter(({ path }) => path.endsWith(HANDLER_SUFFIX));
  const taken = new Map<string, HandlerFile>();
  for (const folder of HANDLER_FOLDERS) {
    for (const file of sources.filter(({ path }) => folderOf(path) === folder)) {
      const base = file.path.slice(folder.length, -HANDLER_SUFFIX.length);
      const earlier = taken.get(base);
      if (earlier)
        warn('files', `${file.path} is not read: ${earlier.path} has the same name and comes first.`);
      else taken.set(base, { ...file, base });
    }
  }
  for (const { path } of sources) {
    if (HANDLER_FOLDERS.includes(folderOf(path))) continue;
    warn('files', `${path} is not read: handlers stand in handlers/, in src/ or beside the document.`);
  }
  return [...taken.values()];
}

/** With its slash; empty for the root. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}
