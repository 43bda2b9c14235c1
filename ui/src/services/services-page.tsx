/** The backends that handlers use. */
import { Link, useLocation } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { Button } from '../base/controls.js';
import { Dialog } from '../base/dialog.js';
import { ListTable } from '../base/list-table.js';
import { MoreButton, SearchField } from '../base/lists.js';
import { Empty, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { Visible } from '../base/visible.js';
import type { Service } from '../generated/routes.js';
import { InstallationSecrets } from './installation-secrets.js';
import { LastTest, mayChange, ServiceState, TYPE_NAMES, typesToMake } from './parts.js';
import { ServiceForm } from './service-form.js';
import { testService } from './tests.js';

const LISTED = 100;

export function ServicesPage() {
  const [params, change] = useAddress();
  const search = params.get('search') ?? '';
  const result = useQuery('GET /api/services', { query: { search, limit: LISTED } });
  const add = (
    <Button look="primary" onClick={() => change({ new: 'postgres' })}>
      New service
    </Button>
  );
  return (
    <Page title="Services" actions={may('services:write') && add}>
      {(search !== '' || (result.data?.length ?? 0) > 8) && (
        <SearchField
          label="Search services"
          value={search}
          onInput={(text) => change({ search: text }, true)}
        />
      )}
      <Loaded result={result} lines={5}>
        {(services) =>
          services.length > 0 ? (
            <>
              <ServiceTable services={services} />
              <MoreButton result={result} />
            </>
          ) : search !== '' ? (
            <Empty title="No service has this in its name or type" />
          ) : (
            <Empty title="There are no services yet">
              <p>
                A service is a database or another backend. Bind it to an endpoint, and the code of the
                endpoint uses it by a name, without knowing its password.
              </p>
              {may('services:write') && add}
            </Empty>
          )
        }
      </Loaded>
      <InstallationSecrets />
      {params.has('new') && may('services:write') && <NewService />}
    </Page>
  );
}

function ServiceTable({ services }: { readonly services: readonly Service[] }) {
  return (
    <ListTable columns={['Name', 'Type', 'State', 'Last test in this browser', 'For']} hasActions>
      {services.map((service) => (
        <tr key={service.id}>
          <th scope="row">
            <Link href={`/ui/services/${service.id}`}>
              <Visible text={service.name} isOneLine />
            </Link>
          </th>
          <td data-label="Type">{TYPE_NAMES[service.service_type]}</td>
          <td data-label="State">
            <ServiceState service={service} />
          </td>
          <td data-label="Last test in this browser">
            <LastTest id={service.id} />
          </td>
          <td data-label="For" class="wrap">
            {service.domains.length > 0 ? service.domains.join(', ') : 'any host'}
          </td>
          <td class="end">
            {mayChange(service) && (
              <Button isSmall label={`Test ${service.name}`} onClick={() => testService(service.id)}>
                Test
              </Button>
            )}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function NewService() {
  const [params, change] = useAddress();
  const [, navigate] = useLocation();
  const type = typesToMake().find((one) => one === params.get('new')) ?? 'postgres';
  const close = () => change({ new: undefined });
  return (
    <Dialog title="New service" isWide losesNothing onClose={close}>
      <ServiceForm
        type={type}
        onType={(chosen) => change({ new: chosen }, true)}
        onDone={({ id }) => navigate(`/ui/services/${id}`)}
        onCancel={close}
      />
    </Dialog>
  );
}
