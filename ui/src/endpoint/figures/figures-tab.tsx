/** What became of the requests of an endpoint over time, and what its handlers used. */
import { Link, useSearchParams } from 'wouter-preact';
import { useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { SelectField } from '../../base/controls.js';
import { Empty, Loaded } from '../../base/notices.js';
import type { Endpoint, Series } from '../../generated/routes.js';
import { EndpointCharts } from './endpoint-charts.js';
import { RANGE_NAMES, RANGES, type Range, rangeOf } from './ranges.js';
import { useSeries } from './use-series.js';

export function FiguresTab({ endpoint }: { readonly endpoint: Endpoint }) {
  const [address, setAddress] = useSearchParams();
  const range = rangeOf(address);
  const version = address.get('version') ?? undefined;
  const series = useSeries(endpoint.id, range, version);
  if (!may('statistics:read'))
    return (
      <Empty title="You may not read figures">
        <p>An administrator can give you the permission statistics:read.</p>
      </Empty>
    );
  return (
    <div class="stack">
      <div class="figures-bar">
        <Ranges current={range} address={address} />
        <VersionChoice
          endpoint={endpoint}
          version={version}
          onChange={(chosen) => setAddress((current) => withVersion(current, chosen))}
        />
      </div>
      <Loaded result={series} lines={8}>
        {(data) =>
          isQuiet(data) ? (
            <Empty title="Nothing happened in this time">
              <p>
                Figures begin with the first request and come a few seconds after it. Choose a longer time, or
                send the endpoint a request.
              </p>
            </Empty>
          ) : (
            <EndpointCharts series={data} />
          )
        }
      </Loaded>
    </div>
  );
}

function Ranges({ current, address }: { readonly current: Range; readonly address: URLSearchParams }) {
  return (
    <nav class="segments" aria-label="Time">
      {(Object.keys(RANGES) as Range[]).map((name) => {
        const chosen = new URLSearchParams(address);
        chosen.set('range', name);
        return (
          <Link key={name} href={`?${chosen}`} aria-current={name === current ? 'true' : undefined}>
            {RANGE_NAMES[name]}
          </Link>
        );
      })}
    </nav>
  );
}

interface VersionChoiceProps {
  readonly endpoint: Endpoint;
  readonly version: string | undefined;
  readonly onChange: (version: string) => void;
}

function VersionChoice({
  endpoint: { id, latest_version: latest },
  version = '',
  onChange,
}: VersionChoiceProps) {
  const { data = [] } = useQuery(
    'GET /api/endpoints/{id}/versions',
    latest === null ? undefined : { params: { id } },
  );
  const numbers = new Set([...(version === '' ? [] : [version]), ...data.map((one) => String(one.version))]);
  if (numbers.size === 0) return null;
  return (
    <SelectField
      label="Version"
      value={version}
      options={[
        { value: '', label: 'All versions' },
        ...[...numbers].map((number) => ({ value: number, label: `Version ${number}` })),
      ]}
      onChange={onChange}
    />
  );
}

function withVersion(address: URLSearchParams, version: string): URLSearchParams {
  const changed = new URLSearchParams(address);
  if (version === '') changed.delete('version');
  else changed.set('version', version);
  return changed;
}

function isQuiet({ points }: Series): boolean {
  return points.every((point) => point.requests === 0 && point.memory_bytes === null && point.restarts === 0);
}
