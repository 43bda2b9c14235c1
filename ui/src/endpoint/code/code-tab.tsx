/** The draft: written, compiled, and mended by what the compiler says. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../../api/client.js';
import { connection } from '../../api/live.js';
import { toApiError } from '../../api/query.js';
import { isExpired, may } from '../../api/session.js';
import { Binary } from '../../base/binary.js';
import { CratesProgress } from '../../base/building-crates.js';
import { Button } from '../../base/controls.js';
import { ErrorNotice } from '../../base/notices.js';
import { Preparation } from '../../base/preparation.js';
import { Visible } from '../../base/visible.js';
import type { Endpoint } from '../../generated/routes.js';
import { type DraftBuild, useBuild } from '../failed-build.js';
import type { Buffers } from './buffers.js';
import { Conflict } from './conflict.js';
import { Crates, isAtCrate } from './crates.js';
import { type Draft, draftOf } from './draft.js';
import { Editor } from './editor.js';
import { openAddFile } from './file-dialogs.js';
import { FileTabs } from './file-tabs.js';
import { FileTree } from './file-tree.js';
import { contentAt, pathsOf, textAt, withText } from './files.js';
import { type OpenFile, useLinkedPlace, useOpenFile } from './open-file.js';
import { Problems } from './problems.js';
import { sourceOf } from './source.js';

export function CodeTab({ endpoint }: { readonly endpoint: Endpoint }) {
  const draft = draftOf(endpoint);
  const file = useOpenFile(draft);
  const buffers = useRef<Buffers>(undefined);
  const [, again] = useState(0);
  const mayWrite = may('endpoints:write');
  const mayCompile = may('endpoints:deploy');
  const conflict = useRef<HTMLElement>(null);
  const { isBusy, error, save, close } = useSaving(draft, mayCompile, () => conflict.current?.focus());
  const build = useBuild(endpoint);
  useLastCheck(endpoint, draft, build);
  useLinkedPlace(buffers.current, file);
  const written = draft.written.value;
  const checked = draft.checked.value;
  // Here, in another window, or by somebody else.
  const isCompiling = (isBusy && mayCompile) || build.current?.finished_at === null;
  return (
    <div class="stack">
      {draft.theirs.value && (
        <Conflict notice={conflict} endpoint={endpoint} draft={draft} theirs={draft.theirs.value} />
      )}
      <section class="card editor-card" aria-label="Code">
        <header>
          <span class="muted" role="status">
            {isBusy && !mayCompile
              ? 'Saving …'
              : isCompiling
                ? 'Compiling …'
                : stateOf(draft, endpoint, mayWrite)}
          </span>
          <div class="actions">
            {mayWrite && draft.isDirty.value && (
              <Button isSmall look="plain" onClick={() => draft.discard()}>
                Discard changes
              </Button>
            )}
            {mayWrite && (
              <Button isSmall onClick={() => openAddFile(draft, file)}>
                Add file
              </Button>
            )}
            {(mayCompile || mayWrite) && (
              <Button isSmall isDisabled={isBusy || written.code === ''} onClick={() => save()}>
                {mayCompile ? 'Compile' : 'Save'} <kbd>Ctrl S</kbd>
              </Button>
            )}
          </div>
        </header>
        {isCompiling && (
          <div class="pad">
            {build.current?.crates ? <CratesProgress crates={build.current.crates} /> : <Preparation />}
          </div>
        )}
        {file.missing !== undefined && (
          <p class="pad-in muted" role="status">
            There is no file <Visible text={file.missing} isOneLine /> in this draft.
          </p>
        )}
        <Files endpoint={endpoint} draft={draft} file={file} mayWrite={mayWrite}>
          <Editor
            path={file.path}
            entry={written.entry}
            textOf={(path) => textAt(draft.written.peek(), path)}
            replaced={draft.replaced.value}
            isReadOnly={!mayWrite}
            checked={checked}
            onInput={(path, text) => draft.write(withText(draft.written.peek(), path, text))}
            onOpen={(path) => path !== file.path && file.open(path)}
            onSave={() => void save()}
            onUpdate={(changed) => {
              buffers.current = changed;
              again((count) => count + 1);
            }}
          />
        </Files>
        <p class="small muted editor-foot">
          Ctrl F searches, Ctrl Space completes a word. Escape, then Tab leaves the editor.
        </p>
      </section>
      {error && !isAtCrate(error, written.crates) && (
        <ErrorNotice error={error} onRetry={() => void save()} onClose={close} />
      )}
      {checked && (!error || checked.hasFailed) && <Problems checked={checked} buffers={buffers.current} />}
      <Crates
        draft={draft}
        isReadOnly={!mayWrite}
        error={error}
        onUpdate={mayCompile && !isBusy && written.code !== '' ? () => void save(true) : undefined}
      />
    </div>
  );
}

interface FilesProps {
  readonly endpoint: Endpoint;
  readonly draft: Draft;
  readonly file: OpenFile;
  readonly mayWrite: boolean;
  /** The editor: it is there also while a file is open that has no text, and keeps what was done in the others. */
  readonly children: ComponentChildren;
}

/** Of several files a tree, and tabs of those that are open; one has neither. */
function Files({ endpoint, draft, file, mayWrite, children }: FilesProps) {
  const written = draft.written.value;
  const content = contentAt(written, file.path);
  const isText = typeof content === 'string';
  const hasSeveral = pathsOf(written).length > 1;
  return (
    <div class={hasSeveral ? 'editor-files' : undefined}>
      {hasSeveral && <FileTree endpoint={endpoint} draft={draft} file={file} mayWrite={mayWrite} />}
      <div>
        {hasSeveral && <FileTabs draft={draft} file={file} />}
        {!isText && content && (
          <div class="pad">
            <Binary path={file.path} content={content} />
          </div>
        )}
        <div hidden={!isText}>{children}</div>
      </div>
    </div>
  );
}

function stateOf({ isDirty, checked, theirs }: Draft, endpoint: Endpoint, mayWrite: boolean): string {
  const { needs_compile, latest_version } = endpoint;
  if (!mayWrite) return 'You may read this, not change it.';
  if (theirs.value) return 'Not saved: somebody else has changed it';
  if (isDirty.value) return 'Changed, not saved yet';
  if (checked.value?.hasFailed) return 'Saved; it does not compile';
  if (latest_version === null) return 'Saved, not compiled yet';
  return needs_compile
    ? 'Saved, newer than what was compiled'
    : `Saved, the same as version ${latest_version}`;
}

/**
 * Saves, and compiles for those who may, one text after the other: what is written meanwhile is next, if one asks for
 * that. What an expired session has refused is done when the same person has signed in again.
 * @param onConflict called when it was not done, because somebody else has changed the draft
 */
function useSaving(draft: Draft, mayCompile: boolean, onConflict: () => void) {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<{ readonly error: ApiError; readonly draft: Draft }>();
  const requested = useRef(0);
  const isUpdate = useRef(false);
  const save = async (update = false) => {
    requested.current++;
    isUpdate.current ||= update;
    if (requested.current > 1) return;
    setBusy(true);
    setFailure(undefined);
    try {
      for (let done = 0; done < requested.current; ) {
        done = requested.current;
        const isAsked = isUpdate.current;
        isUpdate.current = false;
        if ((await (mayCompile ? draft.compile(isAsked) : draft.save())) === 'changed') onConflict();
      }
    } catch (thrown) {
      setFailure({ error: toApiError(thrown), draft });
    }
    requested.current = 0;
    setBusy(false);
  };
  useEffect(() => {
    if (isExpired.value || failure?.error.status !== 401) return;
    setFailure(undefined);
    if (failure.draft === draft) void save();
  }, [isExpired.value]);
  // What the shell says of the connection is true again; what is written waits for its author.
  useEffect(() => {
    if (connection.value === 'live')
      setFailure((before) => (before?.error.code === 'unreachable' ? undefined : before));
  }, [connection.value]);
  return { isBusy, error: failure?.error, save, close: () => setFailure(undefined) };
}

/** What the compiler said of the draft when it was compiled last, in another window or on another day. */
function useLastCheck(endpoint: Endpoint, draft: Draft, { failed, current }: DraftBuild): void {
  const isOfDraft = endpoint.latest_version !== null && !endpoint.needs_compile;
  const succeeded = current?.state === 'succeeded' && isOfDraft ? current : undefined;
  const build = failed ?? succeeded;
  useEffect(() => {
    if (!build || draft.checked.peek()) return;
    const { diagnostics, state } = build;
    const hasFailed = state === 'failed';
    if (hasFailed || diagnostics.length > 0)
      draft.checked.value = { source: sourceOf(endpoint), diagnostics, hasFailed };
  }, [draft, build]);
}
