/** Which versions serve now, and how two share the requests: a canary, its promotion, and rollback. */
import { useEffect, useId, useState } from 'preact/hooks';
import { useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { Button, SelectField } from '../../base/controls.js';
import { Loaded, Skeleton } from '../../base/notices.js';
import { Badge } from '../../base/text.js';
import type { Endpoint, TargetInForce, VersionSummary } from '../../generated/routes.js';
import { serve } from '../serve.js';

interface SharesProps {
  readonly endpoint: Endpoint;
  readonly versions: readonly VersionSummary[];
}

export function Shares({ endpoint, versions }: SharesProps) {
  const targets = endpoint.running ? (endpoint.deployment?.targets ?? []) : [];
  const [first, second] = targets;
  const others = versions.filter(({ version }) => version !== first?.version);
  if (!first) return <p class="muted">No version serves now.</p>;
  if (!may('endpoints:deploy') || (!second && others.length === 0)) return <Serving targets={targets} />;
  return (
    <section class="card pad stack" aria-label="Shares of the requests">
      <Serving targets={targets} />
      {second ? (
        <Sharing endpoint={endpoint} targets={[first, second]} />
      ) : (
        <NewCanary endpoint={endpoint} stable={first.version} others={others} />
      )}
    </section>
  );
}

function Serving({ targets }: { readonly targets: readonly TargetInForce[] }) {
  return (
    <ul class="stack tight">
      {targets.map(({ version, percent, state, error }) => (
        <li key={version} class="row-inline">
          <strong>Version {version}</strong>
          <span class="number">{percent} % of the requests</span>
          {state === 'failed' && <Badge tone="bad">cannot be kept running</Badge>}
          {state === 'starting' && <Badge tone="warn">starting</Badge>}
          {error !== null && <span class="problem small">{error}</span>}
        </li>
      ))}
    </ul>
  );
}

/** What the share of a new canary is at first. */
const FIRST_PERCENT = 10;

interface NewCanaryProps {
  readonly endpoint: Endpoint;
  readonly stable: number;
  readonly others: readonly VersionSummary[];
}

function NewCanary({ endpoint, stable, others }: NewCanaryProps) {
  const newest = others[0]?.version ?? 0;
  const [chosen, setChosen] = useState<string>();
  const [percent, setPercent] = useState(FIRST_PERCENT);
  const version = Number(chosen ?? newest);
  return (
    <details>
      <summary>Try another version on some of the requests</summary>
      <div class="stack canary">
        <SelectField
          label="Version"
          value={String(version)}
          options={others.map((other) => ({
            value: String(other.version),
            label: `Version ${other.version}`,
          }))}
          onChange={setChosen}
        />
        <Slider percent={percent} version={version} onInput={setPercent} />
        <div class="actions">
          <Button onClick={() => share(endpoint, stable, version, percent)}>
            Send {percent} % to version {version}
          </Button>
        </div>
      </div>
    </details>
  );
}

interface SharingProps {
  readonly endpoint: Endpoint;
  readonly targets: readonly [TargetInForce, TargetInForce];
}

/** The version that served alone is the stable one, whatever the numbers and the shares of both are. */
function Sharing({ endpoint, targets }: SharingProps) {
  const history = useQuery('GET /api/endpoints/{id}/deployments', { params: { id: endpoint.id } });
  return (
    <Loaded result={history} lines={2}>
      {(deployments) => {
        // An older answer does not have it yet.
        const now = deployments.findIndex(({ id }) => id === endpoint.deployment?.id);
        if (now < 0) return <Skeleton lines={2} />;
        const alone = deployments
          .slice(now)
          .find(({ outcome, targets }) => outcome === 'succeeded' && targets.length === 1);
        // Where neither of them did, that with the greater share.
        const isSecond = alone?.targets[0]?.version === targets[1].version;
        const [stable, canary] = isSecond ? [targets[1], targets[0]] : targets;
        return (
          <Canary
            endpoint={endpoint}
            stable={stable.version}
            canary={canary.version}
            percent={canary.percent}
          />
        );
      }}
    </Loaded>
  );
}

interface CanaryProps {
  readonly endpoint: Endpoint;
  readonly stable: number;
  readonly canary: number;
  readonly percent: number;
}

function Canary({ endpoint, stable, canary, percent }: CanaryProps) {
  const [chosen, setChosen] = useState(percent);
  useEffect(() => setChosen(percent), [percent]);
  return (
    <div class="stack canary">
      <Slider percent={chosen} version={canary} onInput={setChosen} />
      <div class="actions">
        <Button isDisabled={chosen === percent} onClick={() => share(endpoint, stable, canary, chosen)}>
          Send {chosen} % to version {canary}
        </Button>
        <Button look="primary" onClick={() => serve(endpoint, [{ version: canary, percent: 100 }])}>
          Promote version {canary}
        </Button>
        <Button onClick={() => serve(endpoint, [{ version: stable, percent: 100 }])}>
          Back to version {stable} only
        </Button>
      </div>
    </div>
  );
}

const share = (endpoint: Endpoint, stable: number, canary: number, percent: number) =>
  serve(endpoint, [
    { version: stable, percent: 100 - percent },
    { version: canary, percent },
  ]);

interface SliderProps {
  readonly percent: number;
  readonly version: number;
  readonly onInput: (percent: number) => void;
}

function Slider({ percent, version, onInput }: SliderProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>
        Share of version {version}: <span class="number">{percent} %</span>
      </label>
      <input
        id={id}
        type="range"
        class="slider"
        min={1}
        max={99}
        value={percent}
        onInput={(event) => onInput(Number(event.currentTarget.value))}
      />
    </div>
  );
}
