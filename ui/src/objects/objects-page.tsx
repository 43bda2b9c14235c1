/** Files in object storages: what is in a folder, and what goes there. */
import { useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { SelectField } from '../base/controls.js';
import { Empty, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import type { Service } from '../generated/routes.js';
import { Folder } from './folder.js';

export function ObjectsPage() {
  // The type is one of the texts that are searched.
  const result = useQuery(
    'GET /api/services',
    may('services:read') ? { query: { search: 'objstore', limit: 1_000 } } : undefined,
  );
  return (
    <Page title="Objects">
      {may('services:read') ? (
        <Loaded result={result}>{(services) => <Storages services={services} />}</Loaded>
      ) : (
        <Empty title="Object storages are services, which you may not see" />
      )}
    </Page>
  );
}

function Storages({ services }: { readonly services: readonly Service[] }) {
  const [params, change] = useAddress();
  const storages = services.filter(({ service_type }) => service_type === 'objstore');
  const active = storages.filter(({ active }) => active);
  // It stays the one that is shown: what is on its way to a storage is not for another one.
  const first = useRef<string | undefined>(undefined);
  first.current ??= active[0]?.id;
  const selected = params.get('service') ?? first.current;
  const chosen = active.find(({ id }) => id === selected);
  if (!chosen && active.length > 0)
    return <Missing storage={storages.find(({ id }) => id === selected)} active={active} />;
  if (!chosen)
    return (
      <Empty title={storages.length > 0 ? 'No object storage is active' : 'There is no object storage yet'}>
        <p>
          Files are in the bucket of a service of the type object storage, such as S3 or MinIO, which has to
          be active.
        </p>
        {storages.map((storage) => (
          <Activate key={storage.id} storage={storage} />
        ))}
        {storages.length === 0 && may('services:write') && (
          <Link class="button primary" href="/ui/services?new=objstore">
            New object storage
          </Link>
        )}
      </Empty>
    );
  return (
    <>
      {active.length > 1 && (
        <div class="filters">
          <SelectField
            label="Object storage"
            options={active.map(({ id, name }) => ({ value: id, label: name }))}
            value={chosen.id}
            onChange={(service) => change({ service, prefix: undefined })}
          />
        </div>
      )}
      <Folder key={chosen.id} service={chosen.id} prefix={params.get('prefix') ?? ''} />
    </>
  );
}

interface MissingProps {
  /** Undefined: there is none of this id. */
  readonly storage: Service | undefined;
  readonly active: readonly Service[];
}

/** Instead of what is in another one, which one could take for it. */
function Missing({ storage, active }: MissingProps) {
  return (
    <Empty
      title={
        storage ? `The object storage “${storage.name}” is not active` : 'There is no such object storage'
      }
    >
      {storage && <Activate storage={storage} />}
      {active.map(({ id, name }) => (
        <Link key={id} class="button" href={`/ui/objects?service=${id}`}>
          Show “{name}”
        </Link>
      ))}
    </Empty>
  );
}

function Activate({ storage: { id, name } }: { readonly storage: Service }) {
  return (
    <Link class="button" href={`/ui/services/${id}`}>
      Open “{name}” to activate it
    </Link>
  );
}
