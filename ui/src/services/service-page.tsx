/** One service: how it stands, its settings, and who uses it. */
import { Link, useLocation } from 'wouter-preact';
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import type { PageProps } from '../base/lazy.js';
import { ListTable } from '../base/list-table.js';
import { Loaded } from '../base/notices.js';
import { Page, Tabs } from '../base/page.js';
import { Ago, Method } from '../base/text.js';
import { done, warned } from '../base/toasts.js';
import { WhoChanged } from '../base/who-changed.js';
import { labelOf } from '../fields/schema.js';
import type { Service, UsingEndpoint } from '../generated/routes.js';
import { LastTest, mayChange, ServiceState, TYPE_NAMES } from './parts.js';
import { ServiceForm } from './service-form.js';
import { outcomes, testService } from './tests.js';

const SUBJECT = { kind: 'service', list: '/ui/services', listName: 'All services' } as const;

export function ServicePage({ params: { id = '' } }: PageProps) {
  const result = useQuery('GET /api/services/{id}', { params: { id } });
  const service = result.data;
  return (
    <Page
      title={service?.name ?? 'Service'}
      crumbs={<Link href="/ui/services">Services</Link>}
      actions={service && mayChange(service) && <Actions service={service} />}
    >
      <Loaded result={result} subject={SUBJECT}>
        {(shown) => <Content service={shown} />}
      </Loaded>
    </Page>
  );
}

function Content({ service }: { readonly service: Service }) {
  const [params] = useAddress();
  const tab = params.get('tab') === 'settings' && mayChange(service) ? 'settings' : 'overview';
  const to = `/ui/services/${service.id}`;
  return (
    <>
      <Tabs
        label="Service"
        tabs={[
          { to, label: 'Overview', isCurrent: tab === 'overview' },
          ...(mayChange(service)
            ? [{ to: `${to}?tab=settings`, label: 'Settings', isCurrent: tab === 'settings' }]
            : []),
        ]}
      />
      {tab === 'settings' ? (
        <div class="form wide">
          <ServiceForm
            service={service}
            type={service.service_type}
            onDone={() => done('The service is saved.')}
          />
        </div>
      ) : (
        <Overview service={service} />
      )}
    </>
  );
}

function Overview({ service }: { readonly service: Service }) {
  const { id, service_type, state, state_message, domains, config, updated_at } = service;
  const outcome = outcomes.value[id];
  const isSaidByTest = outcome !== undefined && !outcome.connected && outcome.error === state_message;
  return (
    <>
      {(state === 'failed' || state === 'unreachable') && state_message !== null && !isSaidByTest && (
        <div class="notice bad">
          {state === 'failed' ? 'It has failed' : 'It cannot be reached'}: {state_message}
        </div>
      )}
      {outcome && !outcome.connected && (
        <div class="notice bad" role="alert">
          <div>
            The test failed <Ago at={outcome.at} />: {outcome.error}
          </div>
          {mayChange(service) && (
            <Link class="button small" href={`/ui/services/${id}?tab=settings`}>
              Change the settings
            </Link>
          )}
        </div>
      )}
      {outcome?.connected && (
        <div class="notice ok" role="status">
          {outcome.message}
        </div>
      )}
      <div class="card pad">
        <dl class="facts">
          <dt>State</dt>
          <dd>
            <ServiceState service={service} />{' '}
            {state_message !== null && state !== 'failed' && state !== 'unreachable' && (
              <span class="muted">{state_message}</span>
            )}
          </dd>
          <dt>Type</dt>
          <dd>{TYPE_NAMES[service_type]}</dd>
          {outcome && (
            <>
              <dt>Last test</dt>
              <dd>
                <LastTest id={id} /> <span class="muted">in this browser</span>
              </dd>
            </>
          )}
          <dt>For</dt>
          <dd>{domains.length > 0 ? domains.join(', ') : 'endpoints of any host'}</dd>
          {Object.entries(config as object)
            .filter(([, value]) => value !== null && value !== '')
            .map(([name, value]) => (
              <Fact key={name} name={name} value={value} />
            ))}
          <dt>Changed</dt>
          <dd>
            <Ago at={updated_at} />
            <WhoChanged kind="service" id={id} />
          </dd>
        </dl>
      </div>
      {may('endpoints:read') && <Users id={id} />}
    </>
  );
}

const SECRETS = /^(password|secret_key|private_key|token|api_key|uri|headers)$/;

/** A setting as it is stored; of secrets only that there is one. */
function Fact({ name, value }: { readonly name: string; readonly value: unknown }) {
  return (
    <>
      <dt>{labelOf(name)}</dt>
      <dd>{SECRETS.test(name) ? secretText(value) : <code>{plainText(value)}</code>}</dd>
    </>
  );
}

function secretText(value: unknown): string {
  if (typeof value === 'string') return 'stored, and not shown';
  const { secret, ...others } = value as { readonly secret?: string };
  return typeof secret === 'string' ? `the secret ${secret}` : Object.keys(others).join(', ');
}

function plainText(value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value);
  return text.startsWith('-----BEGIN') ? 'a certificate' : text;
}

function Users({ id }: { readonly id: string }) {
  const result = useQuery('GET /api/services/{id}/endpoints', { params: { id } });
  return (
    <section class="stack tight" aria-labelledby="users">
      <h2 id="users">Endpoints that use it</h2>
      <Loaded result={result}>
        {(endpoints) =>
          endpoints.length > 0 ? (
            <EndpointTable endpoints={endpoints} />
          ) : (
            <p class="muted">None yet. Bind it in the settings of an endpoint.</p>
          )
        }
      </Loaded>
    </section>
  );
}

function EndpointTable({ endpoints }: { readonly endpoints: readonly UsingEndpoint[] }) {
  return (
    <ListTable columns={['Endpoint', 'Name in its code']}>
      {endpoints.map((endpoint) => (
        <tr key={`${endpoint.id} ${endpoint.pool_id}`}>
          <th scope="row">
            <Method name={endpoint.method} />{' '}
            <Link href={`/ui/endpoints/${endpoint.id}`}>
              {endpoint.domain === '*' ? '' : endpoint.domain}
              {endpoint.route}
            </Link>
          </th>
          <td data-label="Name in its code">
            <code>{endpoint.pool_id}</code>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function Actions({ service: { id, name, active, enabled } }: { readonly service: Service }) {
  const [, navigate] = useLocation();
  const change = async (route: 'POST /api/services/{id}/activate' | 'POST /api/services/{id}/deactivate') => {
    const { data } = await call(route, { params: { id } });
    invalidate('/api/services');
    // What has been asked for is done; whether it helps is another thing.
    const after = (await call('GET /api/services/{id}', { params: { id } })).data;
    const isWrong = after.state === 'unreachable' || after.state === 'failed';
    if (isWrong && data.active) warned(data.message);
    else done(data.message);
  };
  const askToDelete = () =>
    ask({
      title: `Delete “${name}”?`,
      action: 'Delete the service',
      isDangerous: true,
      text: <DeletedWithIt id={id} />,
      async run() {
        await call('DELETE /api/services/{id}', { params: { id } });
        navigate('/ui/services');
        invalidate('/api/services');
        done('The service is deleted.');
      },
    });
  return (
    <>
      <Button onClick={() => testService(id)}>Test</Button>
      {active ? (
        <Button onClick={() => change('POST /api/services/{id}/deactivate')}>Deactivate</Button>
      ) : (
        enabled && (
          <Button look="primary" onClick={() => change('POST /api/services/{id}/activate')}>
            Activate
          </Button>
        )
      )}
      <Button look="danger" onClick={askToDelete}>
        Delete
      </Button>
    </>
  );
}

/** Who uses a service, and can no longer when it is deleted. */
function DeletedWithIt({ id }: { readonly id: string }) {
  const users = useQuery(
    'GET /api/services/{id}/endpoints',
    may('endpoints:read') ? { params: { id } } : undefined,
  );
  const count = users.data?.length ?? 0;
  if (count === 0) return <p>No endpoint uses it. What is in the backend stays there.</p>;
  return (
    <>
      <p>
        {count === 1 ? 'One binding goes' : `${count} bindings go`} with it. The code of these endpoints
        cannot use the service any more:
      </p>
      <ul class="scroll-list">
        {users.data?.map((endpoint) => (
          <li key={`${endpoint.id} ${endpoint.pool_id}`}>
            <Method name={endpoint.method} /> {endpoint.domain}
            {endpoint.path} as <code>{endpoint.pool_id}</code>
          </li>
        ))}
      </ul>
    </>
  );
}
