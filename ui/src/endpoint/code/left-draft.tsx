/** What was being written when somebody else deleted the endpoint. */
import { Columns } from '../../base/columns.js';
import { Button } from '../../base/controls.js';
import { copyText } from '../../base/copy.js';
import { done } from '../../base/toasts.js';
import type { Endpoint } from '../../generated/routes.js';
import { draftOf } from './draft.js';
import { textAt } from './files.js';
import { fileOf, isSameContent, type Source } from './source.js';

/** It can be copied until it is discarded. @param endpoint as it was */
export function LeftDraft({ endpoint }: { readonly endpoint: Endpoint }) {
  const draft = draftOf(endpoint);
  if (!draft.isDirty.value) return null;
  const text = changedText(draft.base.value, draft.written.value);
  return (
    <section class="card" aria-label="Code that was not saved">
      <header>
        <h2>Your code was not saved</h2>
        <div class="actions">
          <Button isSmall look="plain" onClick={() => draft.discard()}>
            Discard
          </Button>
          <Button
            isSmall
            onClick={async ({ currentTarget }) => {
              const isCopied = await copyText(text, currentTarget as HTMLElement);
              done(
                isCopied ? 'Copied the code.' : 'The browser does not allow that: select it, and copy it.',
              );
            }}
          >
            Copy
          </Button>
        </div>
      </header>
      <div class="pad">
        <Columns>{text}</Columns>
      </div>
    </section>
  );
}

/** The code, and the files that were not saved as they are. */
function changedText(saved: Source, written: Source): string {
  const changed = Object.keys(written.files).filter(
    (path) => !isSameContent(fileOf(saved.files, path), written.files[path]),
  );
  const texts = changed.map((path) => `// ${path}\n${textAt(written, path) ?? '// (binary)\n'}`);
  return [written.code, ...texts].join('\n');
}
