/** How a build stands, and how long it took. */
import { Link } from 'wouter-preact';
import { Badge, duration, type Tone } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { Build, BuildSummary } from '../generated/routes.js';

const TONES: Readonly<Record<Build['state'], Tone>> = {
  queued: 'idle',
  running: 'warn',
  succeeded: 'ok',
  failed: 'bad',
};

export function BuildState({ state }: { readonly state: Build['state'] }) {
  return <Badge tone={TONES[state]}>{state}</Badge>;
}

/** The time from its start to its end. */
export function tookOf({ started_at, finished_at, cached }: BuildSummary | Build): string {
  if (cached) return 'nothing to compile';
  if (started_at === null || finished_at === null) return '';
  return duration(new Date(finished_at).getTime() - new Date(started_at).getTime());
}

/** Whose latest build it is; where there is none, whose code it is or was. */
export function endpointsOf({ endpoints, of_source }: Pick<Build, 'endpoints' | 'of_source'>) {
  return endpoints.length > 0 ? endpoints : of_source;
}

export function BuiltEndpoints({ build }: { readonly build: Pick<Build, 'endpoints' | 'of_source'> }) {
  const endpoints = endpointsOf(build);
  if (endpoints.length === 0) return <span class="muted">none has this code now</span>;
  return (
    <>
      {endpoints.map(({ id, name }, at) => (
        <span key={id}>
          {at > 0 && ', '}
          <Link href={`/ui/endpoints/${id}`}>
            <Visible text={name} isOneLine />
          </Link>
        </span>
      ))}
    </>
  );
}
