/** Somebody else has changed the draft: what one does with the two sources. */
import type { Ref } from 'preact';
import { useState } from 'preact/hooks';
import { useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { whoOf } from '../../base/actor.js';
import { Button } from '../../base/controls.js';
import { Dialog } from '../../base/dialog.js';
import { lazyPart } from '../../base/lazy.js';
import { Ago } from '../../base/text.js';
import { done } from '../../base/toasts.js';
import { Visible } from '../../base/visible.js';
import type { Endpoint } from '../../generated/routes.js';
import type { Draft } from './draft.js';
import type { Source } from './source.js';

const SourceDiff = lazyPart(async () => (await import('../versions/source-diff.js')).SourceDiff);

interface ConflictProps {
  /** What gets the focus when one tries to save nevertheless. */
  readonly notice: Ref<HTMLElement>;
  readonly endpoint: Endpoint;
  readonly draft: Draft;
  readonly theirs: Source;
}

export function Conflict({ notice, endpoint, draft, theirs }: ConflictProps) {
  const [isComparing, setComparing] = useState(false);
  return (
    <section ref={notice} class="notice warn" role="alert" tabIndex={-1}>
      <div>
        Somebody else has changed this draft since you began
        <ByWhom endpoint={endpoint} />. Nothing of yours is lost, or saved.
      </div>
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
          <SourceDiff
            before={{ label: 'Theirs', source: theirs }}
            after={{ label: 'Yours', source: draft.written.value }}
          />
          <footer>
            <Button onClick={() => setComparing(false)}>Close</Button>
          </footer>
        </Dialog>
      )}
    </section>
  );
}

const LOOKED_AT = 20;
const SOURCE = ['code', 'edition', 'entry', 'files', 'dependencies', 'lock'];

/** Who has changed it last, for those who may know. */
function ByWhom({ endpoint: { id } }: { readonly endpoint: Endpoint }) {
  const query = { object_kind: 'endpoint', object_id: id, outcome: 'changed', limit: LOOKED_AT } as const;
  const { data } = useQuery('GET /api/audit', may('audit:read') ? { query } : undefined);
  const last = data?.find(({ after }) => after && SOURCE.some((member) => member in after));
  if (!last) return null;
  return (
    <>
      : <Visible text={whoOf(last.actor)} isOneLine />, <Ago at={last.at} />
    </>
  );
}
