/** What is in one folder: keys have slashes, and what stands before them is shown as folders. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { call, get, target } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import { Drop } from '../base/drop.js';
import { ListTable } from '../base/list-table.js';
import { Empty, Loaded } from '../base/notices.js';
import { Ago, bytes, count } from '../base/text.js';
import { done, failed } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { ObjectList } from '../generated/routes.js';
import { keyProblem } from './key.js';
import { UploadList } from './upload-list.js';
import { addUploads } from './uploads.js';

type StoredObject = ObjectList['objects'][number];

interface FolderProps {
  readonly service: string;
  readonly prefix: string;
}

/** At first; all others with a click. */
const SHOWN = 500;

export function Folder({ service, prefix }: FolderProps) {
  const query = { service, prefix };
  // Handlers, and tools of the storage, change what is in it, too.
  const result = useQuery('GET /api/minio/objects', { query }, { isUnannounced: true });
  const isShown = useRef(true);
  useEffect(
    () => () => {
      isShown.current = false;
    },
    [],
  );
  const send = async (files: readonly File[]) => {
    // What is shown may be older than what would be replaced.
    const { objects } = await get('GET /api/minio/objects', { query });
    const stored = new Set(objects.map(({ key }) => key));
    const existing = files.filter(({ name }) => stored.has(prefix + name));
    addUploads(
      service,
      prefix,
      files.filter((file) => !existing.includes(file)),
    );
    if (existing.length === 0 || !isShown.current) return;
    askToReplace(service, prefix, existing);
    result.refresh();
  };
  return (
    <>
      <div class="row-inline">
        <Crumbs service={service} prefix={prefix} bucket={result.data?.bucket} />
        <Button isSmall look="plain" isDisabled={result.isLoading} onClick={result.refresh}>
          Refresh
        </Button>
      </div>
      {result.data && may('objects:write') && (
        <Drop label="Upload" isMultiple action="Choose files" onFiles={(files) => send(files).catch(failed)}>
          <span class="muted">Drop files here to upload them{prefix !== '' && ` to ${prefix}`}</span>
        </Drop>
      )}
      <UploadList service={service} />
      <Loaded result={result} lines={6}>
        {({ objects }) => <Entries service={service} prefix={prefix} objects={objects} />}
      </Loaded>
    </>
  );
}

function Crumbs({ service, prefix, bucket }: FolderProps & { readonly bucket: string | undefined }) {
  const parts = prefix.split('/').slice(0, -1);
  return (
    <nav class="crumbs path" aria-label="Folder">
      <Link href={pathOf(service, '')}>{bucket ?? 'Bucket'}</Link>
      {parts.map((part, at) => (
        <span key={at}>
          {' / '}
          <Link href={pathOf(service, `${parts.slice(0, at + 1).join('/')}/`)}>{part || '(no name)'}</Link>
        </span>
      ))}
    </nav>
  );
}

function pathOf(service: string, prefix: string): string {
  return `/ui/objects?${new URLSearchParams({ service, ...(prefix !== '' && { prefix }) })}`;
}

interface EntriesProps extends FolderProps {
  readonly objects: readonly StoredObject[];
}

function Entries({ service, prefix, objects }: EntriesProps) {
  const [shown, setShown] = useState(SHOWN);
  const { folders, files } = entriesOf(prefix, objects);
  if (objects.length === 0)
    return (
      <Empty title={prefix === '' ? 'The bucket is empty' : 'Nothing begins with this'}>
        {may('objects:write') && <p>Files that you upload appear here.</p>}
      </Empty>
    );
  return (
    <>
      <ListTable columns={['Name', 'Size', 'Changed']} hasActions>
        {folders.map(({ name, files, size }) => (
          <tr key={name}>
            <th scope="row">
              <Link class="file-name" href={pathOf(service, `${prefix}${name}/`)}>
                {name === '' ? '(no name)' : <Visible text={name} isOneLine />}/
              </Link>
            </th>
            <td data-label="Size" class="number">
              {bytes(size)}
            </td>
            <td class="muted">{files === 1 ? '1 file' : `${count(files)} files`}</td>
            <td />
          </tr>
        ))}
        {files.slice(0, shown).map((file) => (
          <FileRow
            key={file.key}
            service={service}
            name={file.key.slice(prefix.length) || '(the folder itself)'}
            file={file}
          />
        ))}
      </ListTable>
      {files.length > shown && (
        <div class="actions center">
          <Button onClick={() => setShown(files.length)}>Show all {count(files.length)}</Button>
        </div>
      )}
    </>
  );
}

interface FileRowProps {
  readonly service: string;
  readonly name: string;
  readonly file: StoredObject;
}

function FileRow({ service, name, file: { key, size, last_modified } }: FileRowProps) {
  const problem = keyProblem(key);
  return (
    <tr>
      <th scope="row" class="file-name">
        <Visible text={name} isOneLine />
      </th>
      <td data-label="Size" class="number">
        {bytes(size)}
      </td>
      <td data-label="Changed">
        <Ago at={last_modified} />
      </td>
      {problem === undefined ? (
        <td class="end">
          <a
            class="button small"
            href={downloadPath(service, key)}
            download={fileName(key)}
            aria-label={`Download ${key}`}
          >
            Download
          </a>{' '}
          {may('objects:write') && (
            <Button isSmall look="danger" label={`Delete ${key}`} onClick={() => askToDelete(service, key)}>
              Delete
            </Button>
          )}
        </td>
      ) : (
        <td class="wrap small muted">
          Its key {problem}: proxies and browsers would make another one of it, so it can only be reached with
          a tool of the storage.
        </td>
      )}
    </tr>
  );
}

/** @param prefix of the folder that they were dropped into: one may look at another one by now */
function askToReplace(service: string, prefix: string, files: readonly File[]): void {
  ask({
    title: files.length === 1 ? 'Replace the file?' : `Replace ${files.length} files?`,
    action: 'Replace',
    isDangerous: true,
    text: (
      <>
        <p>There is one of this name already; what is in it is lost.</p>
        <ul class="scroll-list">
          {files.map(({ name }) => (
            <li key={name} class="file-name">
              <Visible text={prefix + name} isOneLine />
            </li>
          ))}
        </ul>
      </>
    ),
    run: async () => addUploads(service, prefix, files),
  });
}

function askToDelete(service: string, key: string): void {
  ask({
    title: 'Delete the file?',
    action: 'Delete the file',
    isDangerous: true,
    text: (
      <p>
        <span class="file-name">
          <Visible text={key} isOneLine />
        </span>{' '}
        is removed from the bucket.
      </p>
    ),
    async run() {
      await call('DELETE /api/minio/objects/{key...}', { params: { key }, query: { service } });
      invalidate('/api/minio/objects');
      done('The file is deleted.');
    },
  });
}

/** What stands behind the last slash; of a folder itself its name. */
function fileName(key: string): string {
  return key.replace(/\/+$/, '').split('/').pop() ?? '';
}

function downloadPath(service: string, key: string): string {
  return target('GET /api/minio/objects/{key...}', { params: { key }, query: { service } }).path;
}

function entriesOf(prefix: string, objects: readonly StoredObject[]) {
  const folders = new Map<string, { files: number; size: number }>();
  const files: StoredObject[] = [];
  for (const object of objects) {
    const rest = object.key.slice(prefix.length);
    const slash = rest.indexOf('/');
    if (slash < 0) {
      files.push(object);
      continue;
    }
    const name = rest.slice(0, slash);
    const folder = folders.get(name) ?? { files: 0, size: 0 };
    folders.set(name, { files: folder.files + 1, size: folder.size + object.size });
  }
  return { folders: [...folders].map(([name, folder]) => ({ name, ...folder })), files };
}
