/** Asks before an endpoint is deleted, and says what that takes along. */
import { call } from '../../api/client.js';
import { invalidate, useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { ask } from '../../base/ask.js';
import { count } from '../../base/text.js';
import type { Endpoint } from '../../generated/routes.js';

export function askToDelete(endpoint: Endpoint, onDeleted: () => void): void {
  ask({
    title: `Delete ${endpoint.name}`,
    action: 'Delete',
    isDangerous: true,
    text: <DeletedWithIt endpoint={endpoint} />,
    async run() {
      await call('DELETE /api/endpoints/{id}', { params: { id: endpoint.id } });
      invalidate('/api/endpoints', '/api/collections');
      onDeleted();
    },
  });
}

function DeletedWithIt({ endpoint }: { readonly endpoint: Endpoint }) {
  const { method, path, domain, running } = endpoint;
  const members = useMembers(endpoint);
  return (
    <>
      <p>
        <code>
          {method} {domain === '*' ? '' : domain}
          {path}
        </code>{' '}
        {running ? 'serves requests now; from then on they get 404.' : 'is not running.'}
      </p>
      <p>This goes with it, for good:</p>
      <ul class="bullets">
        {members.map((what) => (
          <li key={what}>{what}</li>
        ))}
      </ul>
      <p class="muted">Its lines in the log and its figures stay until they are as old as all are kept.</p>
    </>
  );
}

/** What belongs to it, as far as one may see it. */
function useMembers({ id, latest_version: latest }: Endpoint): readonly string[] {
  const params = { id };
  const seen = (permission: Parameters<typeof may>[0]) => (may(permission) ? { params } : undefined);
  const { data: variables = {} } = useQuery('GET /api/endpoints/{id}/variables', seen('variables:read'));
  const { data: secrets = [] } = useQuery('GET /api/endpoints/{id}/secrets', seen('secrets:read'));
  const { data: schedules = [] } = useQuery('GET /api/endpoints/{id}/schedules', seen('jobs:read'));
  const { data: bindings = [] } = useQuery('GET /api/endpoints/{id}/services', { params });
  const numbers = [
    [latest ?? 0, 'version', 'versions'],
    [Object.keys(variables).length, 'variable', 'variables'],
    [secrets.length, 'secret', 'secrets'],
    [schedules.length, 'schedule', 'schedules'],
    [bindings.length, 'binding of a service; the service stays', 'bindings of services; the services stay'],
  ] as const;
  return [
    'the code, its limits and policies',
    ...numbers.flatMap(([number, one, many]) =>
      number === 0 ? [] : [`${count(number)} ${number === 1 ? one : many}`],
    ),
    'queued requests that have not been sent, and the history of those that have',
  ];
}
