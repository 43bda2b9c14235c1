/** The versions of an endpoint: which of them serve, what differs between two, and rollback. */
import { useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { whoOf } from '../../base/actor.js';
import { useAddress } from '../../base/address.js';
import { Button } from '../../base/controls.js';
import { Empty, Loaded } from '../../base/notices.js';
import { Ago, Badge } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { Endpoint, VersionSummary } from '../../generated/routes.js';
import { rollBack, serve, servingVersion } from '../serve.js';
import { Comparison, DRAFT } from './comparison.js';
import { Shares } from './shares.js';

const LISTED = 50;

export function VersionsTab({ endpoint }: { readonly endpoint: Endpoint }) {
  const { id } = endpoint;
  const result = useQuery('GET /api/endpoints/{id}/versions', { params: { id }, query: { limit: LISTED } });
  return (
    <Loaded result={result}>
      {(versions) => {
        if (versions.length === 0)
          return (
            <Empty title="No version yet">
              <p>
                Each compiled text becomes a version, which stays as it is. Deploy makes one and has it serve.
              </p>
            </Empty>
          );
        return (
          <div class="stack">
            <Shares endpoint={endpoint} versions={versions} />
            <Comparison endpoint={endpoint} versions={versions} />
            <section class="card" aria-label="Versions">
              <ul class="versions">
                {versions.map((version) => (
                  <Row key={version.version} endpoint={endpoint} version={version} />
                ))}
              </ul>
              {result.hasMore && (
                <div class="pad-in">
                  <Button onClick={result.more}>Show older versions</Button>
                </div>
              )}
            </section>
          </div>
        );
      }}
    </Loaded>
  );
}

/** What has come since is shown as added. The draft is newer than all versions. */
function olderFirst(one: string, other: string): { readonly from: string; readonly to: string } {
  const isOlder = one !== DRAFT && (other === DRAFT || Number(one) < Number(other));
  return isOlder ? { from: one, to: other } : { from: other, to: one };
}

function Row({ endpoint, version }: { readonly endpoint: Endpoint; readonly version: VersionSummary }) {
  const { version: number, message, actor, created_at, deployed_percent } = version;
  const [query, change] = useAddress();
  const serving = servingVersion(endpoint);
  const isServing = endpoint.running && deployed_percent > 0;
  const isEarlier = serving !== null && number < serving;
  return (
    <li>
      <div class="version-what">
        <div class="row-inline">
          <strong>Version {number}</strong>
          {isServing && (
            <Badge tone="ok">{deployed_percent === 100 ? 'serves' : `serves ${deployed_percent} %`}</Badge>
          )}
        </div>
        {message !== null && (
          <div class="version-message">
            <Visible text={message} />
          </div>
        )}
        <div class="small muted">
          {whoOf(actor)}, <Ago at={created_at} />
        </div>
      </div>
      <div class="actions">
        <Button
          isSmall
          look="plain"
          label={`Compare version ${number}`}
          onClick={() => {
            const to = query.get('to') ?? String(serving ?? DRAFT);
            change(olderFirst(String(number), to === String(number) ? DRAFT : to));
          }}
        >
          Compare
        </Button>
        {may('endpoints:deploy') && !(isServing && deployed_percent === 100) && (
          <Button
            isSmall
            label={isEarlier ? `Roll back to version ${number}` : `Have version ${number} serve`}
            onClick={() =>
              isEarlier ? rollBack(endpoint, number) : serve(endpoint, [{ version: number, percent: 100 }])
            }
          >
            {isEarlier ? 'Roll back' : 'Serve'}
          </Button>
        )}
      </div>
    </li>
  );
}
