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

const SOURCES = { domain: 'its domain', collection: 'its collection', endpoint: 'this endpoint' } as const;

export function VariablesSections({ endpoint: { id } }: { readonly endpoint: Endpoint }) {
  const owner = { kind: 'endpoints', id } as const;
  return (
    <>
      <VariablesSection owner={owner} />
      <SecretsSection owner={owner} />
      <Environment id={id} />
    </>
  );
}

function Environment({ id }: { readonly id: string }) {
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
              Nothing yet. Variables and secrets of{' '}
              <Link href="/ui/endpoints">its collection and its domain</Link> show up here, too.
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
                      <td>{SOURCES[entry.scope]}</td>
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
