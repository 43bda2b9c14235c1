/** Variables and secrets of an endpoint, and which are in force. */
import { Link } from 'wouter-preact';
import { useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { Loaded } from '../../base/notices.js';
import { Ago, Badge } from '../../base/text.js';
import type { Endpoint } from '../../generated/routes.js';
import { SecretsSection } from '../../settings/secrets-section.js';
import { Section } from '../../settings/section.js';
import { VariablesSection } from '../../settings/variables-section.js';

export function VariablesSections({ endpoint }: { readonly endpoint: Endpoint }) {
  const owner = { kind: 'endpoints', id: endpoint.id } as const;
  return (
    <>
      <VariablesSection owner={owner} />
      <SecretsSection owner={owner} />
      <Environment endpoint={endpoint} />
    </>
  );
}

function Environment({ endpoint }: { readonly endpoint: Endpoint }) {
  const { id } = endpoint;
  const mayRead = may('variables:read');
  const result = useQuery('GET /api/endpoints/{id}/environment', mayRead ? { params: { id } } : undefined);
  if (!mayRead) return null;
  return (
    <Section
      title="In force"
      hint="What the handler finds in its environment. Of each name the nearest counts: that of the endpoint before that of its collection, and that before the one of its domain."
    >
      <Loaded result={result}>
        {(entries) =>
          entries.length === 0 ? (
            <p class="muted">
              Nothing yet. Variables and secrets of <ScopeLink scope="collection" endpoint={endpoint} /> and{' '}
              <ScopeLink scope="domain" endpoint={endpoint} /> show up here, too.
            </p>
          ) : (
            <div class="scroll-x">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Kind</th>
                    <th scope="col">Set at</th>
                    <th scope="col">Changed</th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((entry) => (
                    <tr key={entry.name}>
                      <td>
                        <code>{entry.name}</code>
                      </td>
                      <td>
                        {entry.secret ? <Badge tone="warn">Secret</Badge> : <Badge tone="idle">Plain</Badge>}
                      </td>
                      <td>
                        <ScopeLink scope={entry.scope} endpoint={endpoint} />
                      </td>
                      <td>
                        <Ago at={entry.updated_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </Section>
  );
}

interface ScopeLinkProps {
  readonly scope: 'domain' | 'collection' | 'endpoint';
  readonly endpoint: Endpoint;
}

/** Where a variable is set, and the way there. */
function ScopeLink({ scope, endpoint: { domain, collection_id: collection } }: ScopeLinkProps) {
  const { data: domains = [] } = useQuery('GET /api/domains', may('domains:read') ? {} : undefined);
  const owner = domains.find(({ host }) => host === domain);
  if (scope === 'endpoint') return <>this endpoint</>;
  if (scope === 'collection' && collection !== null)
    return <Link href={`/ui/collections/${collection}/variables`}>its collection</Link>;
  if (scope === 'domain' && owner) return <Link href={`/ui/domains/${owner.id}/variables`}>its domain</Link>;
  return <>its {scope}</>;
}
