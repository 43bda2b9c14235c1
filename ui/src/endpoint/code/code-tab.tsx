/** The draft: written, compiled, and mended by what the compiler says. */
import type { EditorView } from '@codemirror/view';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useSearchParams } from 'wouter-preact';
import type { ApiError } from '../../api/client.js';
import { toApiError } from '../../api/query.js';
import { may } from '../../api/session.js';
import { Button } from '../../base/controls.js';
import { ErrorNotice } from '../../base/notices.js';
import { failed } from '../../base/toasts.js';
import type { Endpoint } from '../../generated/routes.js';
import { useFailedBuild } from '../failed-build.js';
import { Conflict } from './conflict.js';
import { Crates } from './crates.js';
import { type Draft, draftOf } from './draft.js';
import { Editor } from './editor.js';
import { goTo, offsetOf } from './places.js';
import { Problems } from './problems.js';

export function CodeTab({ endpoint }: { readonly endpoint: Endpoint }) {
  const draft = draftOf(endpoint);
  const view = useRef<EditorView>(undefined);
  const [, again] = useState(0);
  const { isBusy, error, compile, close } = useCompile(draft);
  const mayWrite = may('endpoints:write');
  const mayCompile = may('endpoints:deploy');
  useLastFailure(endpoint, draft);
  useLinkedPlace(view);
  const written = draft.written.value;
  const checked = draft.checked.value;
  const save = () => (mayCompile ? compile() : draft.save().then(() => undefined, failed));
  return (
    <div class="stack">
      {draft.theirs.value && <Conflict draft={draft} theirs={draft.theirs.value} />}
      <section class="card editor-card" aria-label="Code">
        <header>
          <span class="muted" role="status">
            {isBusy ? 'Compiling …' : stateOf(draft, endpoint, mayWrite)}
          </span>
          <div class="actions">
            {mayWrite && draft.isDirty.value && (
              <Button isSmall look="plain" onClick={() => draft.discard()}>
                Discard changes
              </Button>
            )}
            {(mayCompile || mayWrite) && (
              <Button isSmall isDisabled={isBusy || written.code === ''} onClick={save}>
                {mayCompile ? 'Compile' : 'Save'} <kbd>Ctrl S</kbd>
              </Button>
            )}
          </div>
        </header>
        <Editor
          label="Code of the handler"
          code={written.code}
          replaced={draft.replaced.value}
          isReadOnly={!mayWrite}
          checked={checked}
          onInput={(code) => draft.write({ code })}
          onSave={() => void save()}
          onUpdate={(editor) => {
            view.current = editor;
            again((count) => count + 1);
          }}
        />
        <p class="small muted editor-foot">
          Ctrl F searches, Ctrl Space completes a word. Escape, then Tab leaves the editor.
        </p>
      </section>
      {error && <ErrorNotice error={error} onClose={close} />}
      {checked && <Problems checked={checked} view={view.current} />}
      <Crates draft={draft} isReadOnly={!mayWrite} />
    </div>
  );
}

function stateOf({ isDirty, checked }: Draft, endpoint: Endpoint, mayWrite: boolean): string {
  const { needs_compile, latest_version } = endpoint;
  if (!mayWrite) return 'You may read this, not change it.';
  if (isDirty.value) return 'Changed, not saved yet';
  if (checked.value?.hasFailed) return 'Saved; it does not compile';
  if (latest_version === null) return 'Saved, not compiled yet';
  return needs_compile
    ? 'Saved, newer than what was compiled'
    : `Saved, the same as version ${latest_version}`;
}

/** Compiles one text after the other: what is written meanwhile is compiled next, if one asks for that. */
function useCompile(draft: Draft) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const asked = useRef(0);
  const compile = async () => {
    asked.current++;
    if (asked.current > 1) return;
    setBusy(true);
    setError(undefined);
    try {
      for (let done = 0; done < asked.current; ) {
        done = asked.current;
        await draft.compile();
      }
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    asked.current = 0;
    setBusy(false);
  };
  return { isBusy, error, compile, close: () => setError(undefined) };
}

/** What the compiler said of the draft when it was compiled last, in another window or on another day. */
function useLastFailure(endpoint: Endpoint, draft: Draft): void {
  const build = useFailedBuild(endpoint);
  useEffect(() => {
    if (!build || draft.checked.peek()) return;
    draft.checked.value = {
      code: draft.base.peek().code,
      diagnostics: build.diagnostics,
      hasFailed: true,
    };
  }, [draft, build]);
}

/** `?line=12&column=5` leads to a place, as that of a panic in the log. */
function useLinkedPlace(view: { readonly current: EditorView | undefined }): void {
  const [query] = useSearchParams();
  const [line, column] = [Number(query.get('line')), Number(query.get('column') ?? 1)];
  useEffect(() => {
    const editor = view.current;
    if (!editor || !(line >= 1)) return;
    const from = offsetOf(editor.state.doc, line, column >= 1 ? column : 1);
    goTo(editor, { from, to: from });
  }, [line, column]);
}
