/** What an alert is about, by name where one may read it. */
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Visible } from '../base/visible.js';
import type { Alert } from '../generated/routes.js';
import { aboutOf } from './conditions.js';

export function Subject({ scope }: Pick<Alert, 'scope'>) {
  const about = aboutOf(scope);
  if (about === 'endpoint') return <Named kind="endpoint" id={scope?.endpoint_id ?? ''} />;
  if (about === 'service') return <Named kind="service" id={scope?.service_id ?? ''} />;
  if (about === 'all') return <>everything</>;
  return scope?.domain === '*' ? (
    <>endpoints of any host</>
  ) : (
    <Visible text={scope?.domain ?? ''} isOneLine />
  );
}

function Named({ kind, id }: { readonly kind: 'endpoint' | 'service'; readonly id: string }) {
  const mayRead = may(kind === 'endpoint' ? 'endpoints:read' : 'services:read');
  const { data } = useQuery('GET /api/resolve', mayRead ? { query: { kind, name: id } } : undefined);
  if (!data) return <code>{id}</code>;
  return (
    <Link href={`/ui/${kind}s/${id}`}>
      <Visible text={data.name} isOneLine />
    </Link>
  );
}
