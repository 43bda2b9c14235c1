/** Services that the handler can use, each by the name of its pool. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { type ApiError, call } from '../../api/client.js';
import { invalidate, toApiError, useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { ask } from '../../base/ask.js';
import { Button, SelectField, TextField } from '../../base/controls.js';
import { ErrorNotice, Loaded } from '../../base/notices.js';
import { isAtOneOf, problemAt } from '../../base/problems.js';
import { Badge, type Tone } from '../../base/text.js';
import { done } from '../../base/toasts.js';
import { Visible } from '../../base/visible.js';
import type { Binding, Endpoint, Service } from '../../generated/routes.js';
import { Section } from '../../settings/section.js';

const TONES: Readonly<Record<Service['state'], Tone>> = {
  ...{ inactive: 'idle', connecting: 'idle', connected: 'ok', unreachable: 'bad', failed: 'bad' },
};

export function ServicesSection({ endpoint: { id } }: { readonly endpoint: Endpoint }) {
  const bindings = useQuery('GET /api/endpoints/{id}/services', { params: { id } });
  const { data: services = [] } = useQuery('GET /api/services', may('services:read') ? {} : undefined);
  const mayEdit = may('endpoints:write');
  const serviceOf = ({ service_id: bound }: Binding) => services.find((service) => service.id === bound);
  return (
    <Section title="Services" hint="The handler uses a service by the name under which it is bound here.">
      <Loaded result={bindings}>
        {(bound) =>
          bound.length === 0 ? (
            <p class="muted">None is bound.</p>
          ) : (
            <ul class="entries">
              {bound.map((binding) => (
                <li key={`${binding.service_id} ${binding.pool_id}`}>
                  <BoundService binding={binding} service={serviceOf(binding)} />
                  {mayEdit && (
                    <Button
                      isSmall
                      label={`Unbind ${binding.pool_id}`}
                      onClick={() => askToUnbind(id, binding, serviceOf(binding))}
                    >
                      Unbind
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {mayEdit && <BindForm id={id} services={services} />}
    </Section>
  );
}

function askToUnbind(id: string, { service_id }: Binding, service: Service | undefined): void {
  ask({
    title: `Unbind ${service?.name ?? service_id}`,
    action: 'Unbind',
    isDangerous: true,
    text: 'The handler can no longer use it, under any name. Calls that it makes from then on fail. The service itself stays.',
    async run() {
      const params = { endpoint_id: id, service_id };
      await call('DELETE /api/endpoints/{endpoint_id}/services/{service_id}', { params });
      changed(id);
    },
  });
}

function changed(id: string): void {
  invalidate(`/api/endpoints/${id}`, '/api/services');
}

interface BoundServiceProps {
  readonly binding: Binding;
  readonly service: Service | undefined;
}

function BoundService({ binding: { pool_id: pool, service_id: id }, service }: BoundServiceProps) {
  return (
    <span>
      <code>
        <Visible text={pool} isOneLine />
      </code>{' '}
      <Link href={`/ui/services/${id}`}>
        <Visible text={service?.name ?? id} isOneLine />
      </Link>{' '}
      {service && (
        <>
          <span class="small muted">{service.service_type}</span>{' '}
          <Badge tone={TONES[service.state]}>{service.state}</Badge>
        </>
      )}
    </span>
  );
}

const PLACES = ['body.service_id', 'body.pool_id'] as const;

function BindForm({ id, services }: { readonly id: string; readonly services: readonly Service[] }) {
  const [service, setService] = useState('');
  const [pool, setPool] = useState('');
  const [error, setError] = useState<ApiError>();
  if (services.length === 0)
    return (
      <p>
        There is no service to bind. <Link href="/ui/services">Make one</Link> first.
      </p>
    );
  const bind = async () => {
    setError(undefined);
    try {
      const body = { service_id: service, pool_id: pool };
      await call('POST /api/endpoints/{id}/services', { params: { id }, body });
      changed(id);
      done(`${pool} is bound`);
      setPool('');
      setService('');
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void bind();
      }}
    >
      <div class="row">
        <SelectField
          label="Service"
          value={service}
          options={[
            { value: '', label: 'Choose a service' },
            ...services.map((one) => ({ value: one.id, label: `${one.name} (${one.service_type})` })),
          ]}
          problem={problemAt(error, 'body.service_id')}
          onChange={setService}
        />
        <TextField
          label="Name in the handler"
          placeholder="orders"
          value={pool}
          problem={problemAt(error, 'body.pool_id')}
          onInput={setPool}
        />
        <Button isSubmit look="primary" isDisabled={service === ''}>
          Bind
        </Button>
      </div>
      {error && !isAtOneOf(error, PLACES) && <ErrorNotice error={error} />}
    </form>
  );
}
