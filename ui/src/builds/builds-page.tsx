/** What has been compiled, and what is being compiled. */
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { SelectField } from '../base/controls.js';
import { ListTable } from '../base/list-table.js';
import { MoreButton, SearchField } from '../base/lists.js';
import { Empty, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { Ago } from '../base/text.js';
import type { BuildSummary } from '../generated/routes.js';
import { BuildState, BuiltEndpoints, tookOf } from './parts.js';

const LISTED = 50;
const STATES = ['queued', 'running', 'succeeded', 'failed'] as const;

export function BuildsPage() {
  const [params, change] = useAddress();
  const state = STATES.find((one) => one === params.get('state'));
  const search = params.get('search') ?? '';
  const result = useQuery('GET /api/builds', {
    query: { search, limit: LISTED, ...(state !== undefined && { state }) },
  });
  const isFiltered = state !== undefined || search !== '';
  return (
    <Page
      title="Builds"
      actions={
        may('queues:write') && (
          <Link class="button" href="/ui/queues">
            Queues
          </Link>
        )
      }
    >
      <div class="filters">
        <SelectField
          label="State"
          options={[{ value: '', label: 'Any' }, ...STATES.map((one) => ({ value: one, label: one }))]}
          value={state ?? ''}
          onChange={(chosen) => change({ state: chosen })}
        />
        <SearchField
          label="Search in errors and request ids"
          value={search}
          onInput={(text) => change({ search: text }, true)}
        />
      </div>
      <Loaded result={result} lines={6}>
        {(builds) =>
          builds.length > 0 ? (
            <>
              <BuildTable builds={builds} />
              <MoreButton result={result} />
            </>
          ) : (
            <Empty title={isFiltered ? 'No build is like this' : 'Nothing has been compiled yet'}>
              {!isFiltered && <p>A build compiles the code of an endpoint. Deploy one, and it is here.</p>}
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}

function BuildTable({ builds }: { readonly builds: readonly BuildSummary[] }) {
  return (
    <ListTable columns={['Build', 'State', 'Endpoints', 'Requested', 'Took']}>
      {builds.map((build) => (
        <tr key={build.id}>
          <th scope="row">
            <Link class="mono" href={`/ui/builds/${build.id}`}>
              {build.id.slice(0, 8)}
            </Link>
          </th>
          <td data-label="State">
            <BuildState state={build.state} />{' '}
            {build.error_code !== null && <span class="muted small">{build.error_code}</span>}
          </td>
          <td data-label="Endpoints" class="wrap">
            <BuiltEndpoints build={build} />
          </td>
          <td data-label="Requested">
            <Ago at={build.created_at} />
          </td>
          <td data-label="Took" class="number">
            {tookOf(build)}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}
