/** The files of a handler: folders, which file is the code, what has changed, and what other endpoints have, too. */
import { Link } from 'wouter-preact';
import { useQuery } from '../../api/query.js';
import { Menu } from '../../base/menu.js';
import { IN_PLACE } from '../../base/scroll.js';
import { count } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { Endpoint } from '../../generated/routes.js';
import type { Draft } from './draft.js';
import { askToDelete, openRename } from './file-dialogs.js';
import { contentAt, type Folder, folderOf, nameOf, pathsOf } from './files.js';
import type { OpenFile } from './open-file.js';
import { isSameContent } from './source.js';

interface FileTreeProps {
  readonly endpoint: Endpoint;
  readonly draft: Draft;
  readonly file: OpenFile;
  readonly mayWrite: boolean;
}

export function FileTree(props: FileTreeProps) {
  const { id, files } = props.endpoint;
  const isKnown = Object.keys(files).length > 0;
  const { data = [] } = useQuery('GET /api/endpoints/{id}/files', isKnown ? { params: { id } } : undefined);
  const sharedWith = new Map(data.map(({ path, shared_with }) => [path, shared_with]));
  return (
    <nav class="file-tree" aria-label="Files">
      <Contents {...props} folder={folderOf(pathsOf(props.draft.written.value))} sharedWith={sharedWith} />
    </nav>
  );
}

interface ContentsProps extends FileTreeProps {
  readonly folder: Folder;
  /** How many other endpoints have a file, by its path. */
  readonly sharedWith: ReadonlyMap<string, number>;
}

function Contents({ folder, ...props }: ContentsProps) {
  return (
    <ul>
      {folder.folders.map((inner) => (
        <li key={`${inner.name}/`}>
          <details open>
            <summary class="folder">
              <Visible text={inner.name} isOneLine />
            </summary>
            <Contents {...props} folder={inner} />
          </details>
        </li>
      ))}
      {folder.files.map((path) => (
        <li key={path} class="file">
          <FileLink {...props} path={path} sharedWith={props.sharedWith.get(path) ?? 0} />
          {props.mayWrite && <Actions {...props} path={path} />}
        </li>
      ))}
    </ul>
  );
}

interface FileLinkProps extends Pick<FileTreeProps, 'draft' | 'file'> {
  readonly path: string;
  readonly sharedWith: number;
}

function FileLink({ draft, file, path, sharedWith }: FileLinkProps) {
  const isEntry = path === draft.written.value.entry;
  return (
    <Link
      href={file.hrefOf(path)}
      state={IN_PLACE}
      aria-current={path === file.path ? 'true' : undefined}
      title={path}
    >
      <span class="truncate">
        <Visible text={nameOf(path)} isOneLine />
      </span>{' '}
      {isEntry && <span class="small muted">entry</span>} <Changed draft={draft} path={path} />{' '}
      {sharedWith > 0 && <Shared number={sharedWith} />}
    </Link>
  );
}

/** Says that a file is not saved yet as it is. */
export function Changed({ draft, path }: { readonly draft: Draft; readonly path: string }) {
  const [written, saved] = [draft.written.value, draft.base.value];
  if (isSameContent(contentAt(written, path), contentAt(saved, path))) return null;
  return (
    <span class="file-changed" title="Not saved yet">
      <span aria-hidden="true">●</span>
      <span class="visually-hidden">not saved yet</span>
    </span>
  );
}

function Shared({ number }: { readonly number: number }) {
  const words = `also in ${count(number)} ${number === 1 ? 'endpoint' : 'endpoints'}`;
  return (
    <span class="file-shared small" title={`A${words.slice(1)}. What you change here, you change here only.`}>
      <span aria-hidden="true">{count(number)}</span>
      <span class="visually-hidden">{words}</span>
    </span>
  );
}

function Actions({ draft, file, path }: Pick<FileLinkProps, 'draft' | 'file' | 'path'>) {
  const isEntry = path === draft.written.value.entry;
  const rename = { label: 'Rename …', onClick: () => openRename(draft, path, file) };
  const remove = { label: 'Delete …', onClick: () => askToDelete(draft, path, file), isDangerous: true };
  return <Menu label={`Actions for ${path}`} items={isEntry ? [rename] : [rename, remove]} />;
}
