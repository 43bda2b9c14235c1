/** What workers make before they can compile: the SDK, and the crates of handlers. */
import { useQuery } from '../api/query.js';
import type { Health } from '../generated/routes.js';
import { useInterval } from './use-interval.js';

const REFRESH_MS = 2_000;

/** How far they are now; nothing once it is there. */
export function Preparation() {
  const health = useQuery('GET /api/health', {});
  useInterval(REFRESH_MS, health.refresh);
  return <Preparing preparing={health.data?.preparing ?? []} />;
}

export function Preparing({ preparing }: Pick<Health, 'preparing'>) {
  return (
    <>
      {preparing.map(({ what, crates, of, problem }) => (
        <p key={what} class={problem === null ? 'muted' : 'bad-text'}>
          {problem ?? `Preparing ${what}: ${crates} of ${of ?? 'some'} crates `}
          {problem === null && of !== null && (
            <progress class="inline" value={crates} max={of} aria-label={`Preparing ${what}`} />
          )}
        </p>
      ))}
    </>
  );
}
