/** Somebody else has changed the draft: what one does with the two texts. */
import { useState } from 'preact/hooks';
import { Button } from '../../base/controls.js';
import { Dialog } from '../../base/dialog.js';
import { laterPart } from '../../base/later.js';
import { done } from '../../base/toasts.js';
import type { Draft } from './draft.js';
import { type Source, textOf } from './source.js';

const DiffView = laterPart(async () => (await import('../versions/diff-view.js')).DiffView);

export function Conflict({ draft, theirs }: { readonly draft: Draft; readonly theirs: Source }) {
  const [isComparing, setComparing] = useState(false);
  return (
    <div class="notice warn" role="alert">
      <div>Somebody else has changed this draft since you began. Nothing of yours is lost, or saved.</div>
      <div class="actions">
        <Button isSmall onClick={() => setComparing(true)}>
          See the difference
        </Button>
        <Button isSmall onClick={() => draft.discard()}>
          Take theirs
        </Button>
        <Button
          isSmall
          look="danger"
          onClick={async () => {
            draft.keepMine();
            if ((await draft.save()) === 'saved') done('Yours is the draft now.');
          }}
        >
          Overwrite with mine
        </Button>
      </div>
      {isComparing && (
        <Dialog title="Theirs and yours" isWide onClose={() => setComparing(false)}>
          <DiffView
            before={{ label: 'Theirs', text: textOf(theirs) }}
            after={{ label: 'Yours', text: textOf(draft.written.value) }}
          />
          <footer>
            <Button onClick={() => setComparing(false)}>Close</Button>
          </footer>
        </Dialog>
      )}
    </div>
  );
}
