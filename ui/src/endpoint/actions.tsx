/** What one does with an endpoint as a whole. */
import { useState } from 'preact/hooks';
import { call } from '../api/client.js';
import { may } from '../api/session.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import { copyText } from '../base/copy.js';
import { done } from '../base/toasts.js';
import type { Endpoint } from '../generated/routes.js';
import { useOrigin } from './address.js';
import type { Draft } from './code/draft.js';
import { DeployDialog } from './deploy-dialog.js';
import { stop } from './serve.js';

interface ActionsProps {
  readonly endpoint: Endpoint;
  readonly draft: Draft;
}

export function Actions({ endpoint, draft }: ActionsProps) {
  const { id, running, status, latest_version } = endpoint;
  const [isDeploying, setDeploying] = useState(false);
  const isServing = running || status === 'running';
  const isEmpty = draft.written.value.code === '';
  return (
    <>
      <Address endpoint={endpoint} />
      {may('endpoints:deploy') && isServing && <Button onClick={() => askToStop(endpoint)}>Stop …</Button>}
      {may('endpoints:deploy') && !isServing && latest_version !== null && (
        <Button
          onClick={async () => {
            await call('POST /api/endpoints/{id}/start', { params: { id } });
            done(`Version ${latest_version} serves.`);
          }}
        >
          Start version {latest_version}
        </Button>
      )}
      {may('endpoints:deploy') && (
        <Button look="primary" isDisabled={isEmpty} onClick={() => setDeploying(true)}>
          Deploy …
        </Button>
      )}
      {isDeploying && <DeployDialog endpoint={endpoint} draft={draft} onClose={() => setDeploying(false)} />}
    </>
  );
}

function askToStop(endpoint: Endpoint): void {
  ask({
    title: `Stop ${endpoint.method} ${endpoint.route}?`,
    action: 'Stop',
    isDangerous: true,
    text: 'Until a version is started again, its requests are answered with 503.',
    run: () => stop(endpoint),
  });
}

/** A link where a browser can follow it, and the address to copy. */
function Address({ endpoint }: { readonly endpoint: Endpoint }) {
  const origin = useOrigin(endpoint);
  if (origin === undefined) return null;
  const url = `${origin}${endpoint.route}`;
  const canOpen = endpoint.method === 'GET' && endpoint.running && !endpoint.route.includes('{');
  return (
    <>
      {canOpen && (
        <a class="button" href={url} target="_blank" rel="noopener noreferrer">
          Open
        </a>
      )}
      <Button
        onClick={async ({ currentTarget }) => {
          const isCopied = await copyText(url, currentTarget as HTMLElement);
          done(isCopied ? `Copied ${url}` : url);
        }}
      >
        Copy URL
      </Button>
    </>
  );
}
