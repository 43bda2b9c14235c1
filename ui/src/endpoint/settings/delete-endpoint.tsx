/** Asks before an endpoint is deleted, and says what that takes along. */
import { call } from '../../api/client.js';
import { invalidate, useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { FormDialog } from '../../base/dialog.js';
import { count } from '../../base/text.js';
import type { Endpoint } from '../../generated/routes.js';

interface DeleteEndpointProps {
  readonly endpoint: Endpoint;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteEndpoint({ endpoint, onClose, onDeleted }: DeleteEndpointProps) {
  const { id, name, method, path, domain, running } = endpoint;
  const takes = useTaken(endpoint);
  return (
    <FormDialog
      title={`Delete ${name}`}
      action="Delete"
      isDangerous
      onClose={onClose}
      onSubmit={async () => {
        await call('DELETE /api/endpoints/{id}', { params: { id } });
        invalidate('/api/endpoints', '/api/collections');
        onDeleted();
      }}
    >
      <p>
        <code>
          {method} {domain === '*' ? '' : domain}
          {path}
        </code>{' '}
        {running ? 'serves requests now; from then on they get 404.' : 'is not running.'}
      </p>
      <p>This goes with it, for good:</p>
      <ul class="bullets">
        {takes.map((what) => (
          <li key={what}>{what}</li>
        ))}
      </ul>
      <p class="muted">Its lines in the log and its figures stay until they are as old as all are kept.</p>
    </FormDialog>
  );
}

/** What belongs to it, as far as one may see it. */
function useTaken({ id, latest_version: latest }: Endpoint): readonly string[] {
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
