/** The dialogs that add, rename and delete files of a draft. */
import { useState } from 'preact/hooks';
import { ask, openDialog } from '../../base/ask.js';
import { binaryText, contentOf } from '../../base/binary.js';
import { TextField } from '../../base/controls.js';
import { FormDialog } from '../../base/dialog.js';
import { Drop } from '../../base/drop.js';
import { invalidAt } from '../../base/problems.js';
import { bytes } from '../../base/text.js';
import { failed } from '../../base/toasts.js';
import { Visible } from '../../base/visible.js';
import type { Draft } from './draft.js';
import { contentProblem, pathProblem, pathsOf, withFile, withoutFile, withRenamed } from './files.js';
import type { OpenFile } from './open-file.js';
import type { FileContent } from './source.js';

interface AddFileProps {
  readonly draft: Draft;
  readonly file: OpenFile;
  readonly onClose: () => void;
}

interface UploadedFile {
  readonly name: string;
  readonly size: number;
  readonly content: FileContent;
}

const PATH_HINT = 'Relative to the folder of the handler, with "/" between folders: src/common.rs';

export function openAddFile(draft: Draft, file: OpenFile): void {
  openDialog((onClose) => <AddFile draft={draft} file={file} onClose={onClose} />);
}

/** An empty file, or one from the disk. */
function AddFile({ draft, file, onClose }: AddFileProps) {
  const [path, setPath] = useState('');
  const [uploaded, setUploaded] = useState<UploadedFile>();
  const take = async (chosen: File) => {
    const content = contentOf(new Uint8Array(await chosen.arrayBuffer()));
    setUploaded({ name: chosen.name, size: chosen.size, content });
    setPath((before) => (before === '' || before.endsWith('/') ? before + chosen.name : before));
  };
  const add = async () => {
    const source = draft.written.peek();
    const content = uploaded?.content ?? '';
    requireNone(pathProblem(path, pathsOf(source)) ?? contentProblem(path, content));
    draft.replace(withFile(source, path, content));
    file.open(path);
  };
  return (
    <FormDialog title="Add a file" action="Add" onClose={onClose} onSubmit={add}>
      {(problemAt) => (
        <>
          <TextField
            label="Path"
            hint={PATH_HINT}
            placeholder="src/common.rs"
            value={path}
            onInput={setPath}
            problem={problemAt('body.path')}
            autofocus
          />
          <Drop
            label="A file of this computer"
            action="Choose a file"
            onFiles={([chosen]) => {
              if (chosen) take(chosen).catch(failed);
            }}
          >
            <span class="muted">
              {uploaded ? <Uploaded file={uploaded} /> : 'It is empty, unless you drop a file here'}
            </span>
          </Drop>
        </>
      )}
    </FormDialog>
  );
}

function Uploaded({ file: { name, size, content } }: { readonly file: UploadedFile }) {
  return (
    <>
      <Visible text={name} isOneLine />: {typeof content === 'string' ? bytes(size) : binaryText(content)}
    </>
  );
}

export function openRename(draft: Draft, path: string, file: OpenFile): void {
  openDialog((onClose) => <Rename draft={draft} path={path} file={file} onClose={onClose} />);
}

function Rename({ draft, path: before, file, onClose }: AddFileProps & { readonly path: string }) {
  const [path, setPath] = useState(before);
  const rename = async () => {
    if (path === before) return;
    const source = draft.written.peek();
    const others = pathsOf(source).filter((other) => other !== before);
    requireNone(pathProblem(path, others, before === source.entry));
    const renamed = withRenamed(source, before, path);
    requireNone(contentProblem(path, renamed.files[path] ?? ''));
    draft.replace(renamed);
    draft.opened.value = draft.opened.peek().map((one) => (one === before ? path : one));
    if (file.path === before) file.open(path);
  };
  return (
    <FormDialog title={`Rename ${before}`} action="Rename" onClose={onClose} onSubmit={rename}>
      {(problemAt) => (
        <TextField
          label="Path"
          hint={PATH_HINT}
          value={path}
          onInput={setPath}
          problem={problemAt('body.path')}
          autofocus
        />
      )}
    </FormDialog>
  );
}

export function askToDelete(draft: Draft, path: string, file: OpenFile): void {
  ask({
    title: `Delete ${path}?`,
    action: 'Delete',
    isDangerous: true,
    text: 'It is gone from the draft. Versions that have it keep it.',
    run: async () => {
      draft.replace(withoutFile(draft.written.peek(), path));
      if (file.path === path) file.open(draft.written.peek().entry);
    },
  });
}

/** @throws ApiError that the form shows at the path */
function requireNone(problem: string | undefined): void {
  if (problem !== undefined) throw invalidAt('body.path', problem);
}
