/** Two versions side by side, or one and the draft; which ones is in the address. */
import { useEffect, useRef } from 'preact/hooks';
import { useQuery } from '../../api/query.js';
import { useAddress } from '../../base/address.js';
import { Button, SelectField } from '../../base/controls.js';
import { lazyPart } from '../../base/lazy.js';
import { Loaded } from '../../base/notices.js';
import type { Endpoint, VersionSummary } from '../../generated/routes.js';
import { draftOf } from '../code/draft.js';
import { sourceOf } from '../code/source.js';

const SourceDiff = lazyPart(async () => (await import('./source-diff.js')).SourceDiff);
/** Stands for the draft, in the place of the number of a version. */
export const DRAFT = 'draft';

interface ComparisonProps {
  readonly endpoint: Endpoint;
  readonly versions: readonly VersionSummary[];
}

export function Comparison({ endpoint, versions }: ComparisonProps) {
  const [query, change] = useAddress();
  const [from, to] = [query.get('from'), query.get('to')];
  const section = useRef<HTMLElement>(null);
  // What one asked for by a button far below.
  useEffect(() => section.current?.scrollIntoView({ block: 'nearest' }), [from, to]);
  if (from === null || to === null) return null;
  const numbers = new Set([...versions.map(({ version }) => String(version)), from, to]);
  numbers.delete(DRAFT);
  const options = [
    { value: DRAFT, label: 'The draft' },
    ...[...numbers].map((value) => ({ value, label: `Version ${value}` })),
  ];
  return (
    <section ref={section} class="stack" aria-label="Comparison">
      <div class="row">
        <SelectField
          label="Compare"
          value={from}
          options={options}
          onChange={(value) => change({ from: value })}
        />
        <SelectField label="with" value={to} options={options} onChange={(value) => change({ to: value })} />
        <Button look="plain" onClick={() => change({ from: undefined, to: undefined })}>
          Close
        </Button>
      </div>
      <Sides endpoint={endpoint} from={from} to={to} />
    </section>
  );
}

interface SidesProps {
  readonly endpoint: Endpoint;
  readonly from: string;
  readonly to: string;
}

function Sides({ endpoint, from, to }: SidesProps) {
  const before = useSource(endpoint, from);
  const after = useSource(endpoint, to);
  return (
    <Loaded result={before}>
      {(left) => (
        <Loaded result={after}>
          {(right) => (
            <SourceDiff
              before={{ label: labelOf(from), source: left }}
              after={{ label: labelOf(to), source: right }}
            />
          )}
        </Loaded>
      )}
    </Loaded>
  );
}

const labelOf = (which: string) => (which === DRAFT ? 'The draft' : `Version ${which}`);

/** A version, or the draft with what is not saved yet. */
function useSource(endpoint: Endpoint, which: string) {
  const params = { id: endpoint.id, version: which };
  const result = useQuery(
    'GET /api/endpoints/{id}/versions/{version}',
    which === DRAFT ? undefined : { params },
  );
  if (which !== DRAFT) return { ...result, data: result.data && sourceOf(result.data) };
  return { ...result, data: draftOf(endpoint).written.value, error: undefined };
}
