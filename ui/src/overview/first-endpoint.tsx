/** The way from nothing to a live URL: a template, one button, and the answer. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import type { ApiError } from '../api/client.js';
import { call, get } from '../api/client.js';
import { invalidate, toApiError, useQuery } from '../api/query.js';
import { Columns } from '../base/columns.js';
import { Button } from '../base/controls.js';
import { ErrorNotice } from '../base/notices.js';
import { Preparation } from '../base/preparation.js';

const ROUTE = { method: 'GET', path: '/hello/{name}', domain: '*' } as const;
const EXAMPLE = '/hello/Ada';
const CODE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    let name = req.path_param("name").map_or("world", String::as_str);
    Response::json(200, json!({ "message": format!("Hello, {name}!") }))
}

handler_loop!(handle);
`;

type State =
  | { readonly step: 'offered' }
  | { readonly step: 'deploying' }
  | { readonly step: 'failed'; readonly error: ApiError }
  | { readonly step: 'live'; readonly id: string; readonly url: string; readonly answer: string };

const KEPT = 'edge-first-endpoint';
/** Kept while one looks at other pages, and in this tab for a reload: a first build takes a while. */
const state = signal<State>(stored());

function stored(): State {
  try {
    return (JSON.parse(sessionStorage.getItem(KEPT) ?? 'null') as State | null) ?? { step: 'offered' };
  } catch {
    return { step: 'offered' };
  }
}

function keep(now: State): void {
  state.value = now;
  if (now.step === 'deploying' || now.step === 'live') sessionStorage.setItem(KEPT, JSON.stringify(now));
  // A reload leaves requests without an answer, too: what it interrupts goes on after it.
  else if (now.step !== 'failed' || now.error.code !== 'unreachable') sessionStorage.removeItem(KEPT);
}

/** Whether this page waits for the deployment: after a reload, nobody does. */
let isWaiting = false;

export function FirstEndpoint() {
  const now = state.value;
  // The same source is compiled once, and deployed again without harm.
  useEffect(() => {
    if (now.step === 'deploying' && !isWaiting) void deploy();
  }, []);
  return (
    <section class="card" aria-label="Your first endpoint">
      <header>
        <h2>Your first endpoint</h2>
      </header>
      <div class="pad stack">
        {now.step === 'live' ? <Live {...now} /> : <Offer isDeploying={now.step === 'deploying'} />}
        {now.step === 'failed' && <ErrorNotice error={now.error} onRetry={() => void deploy()} />}
      </div>
    </section>
  );
}

function Offer({ isDeploying }: { readonly isDeploying: boolean }) {
  return (
    <>
      <p>
        <code>
          {ROUTE.method} {ROUTE.path}
        </code>{' '}
        greets whoever the path names. It is compiled, started, and called once.
      </p>
      <Columns>{CODE}</Columns>
      <div class="actions">
        <Button look="primary" isDisabled={isDeploying} onClick={() => void deploy()}>
          {isDeploying ? 'Deploying …' : 'Deploy'}
        </Button>
        <Link class="button" href="/ui/import">
          Import an API instead
        </Link>
      </div>
      {isDeploying && (
        <div role="status">
          <p class="muted">
            The first build prepares the SDK, which takes up to a minute; others take a second.
          </p>
          <Preparation />
        </div>
      )}
    </>
  );
}

function Live({ id, url, answer }: Extract<State, { step: 'live' }>) {
  const { error } = useQuery('GET /api/endpoints/{id}', { params: { id } });
  useEffect(() => {
    // It was deleted meanwhile.
    if (error?.status === 404) keep({ step: 'offered' });
  }, [error]);
  return (
    <>
      <p>
        It is live at{' '}
        <a href={url} target="_blank" rel="noreferrer">
          {url}
        </a>
        , and has answered:
      </p>
      <pre class="code-block">{answer}</pre>
      <div class="actions">
        <Link class="button primary" href={`/ui/endpoints/${id}`}>
          Edit its code
        </Link>
        <Link class="button" href={`/ui/endpoints/${id}/logs`}>
          See its logs
        </Link>
      </div>
    </>
  );
}

async function deploy(): Promise<void> {
  isWaiting = true;
  keep({ step: 'deploying' });
  try {
    const { id } = await draft();
    await call('POST /api/endpoints/{id}/deploy', { params: { id }, body: { message: 'The first version' } });
    const [{ gateway }, answer] = await Promise.all([
      get('GET /api/'),
      get('POST /api/endpoints/{id}/invoke', { params: { id }, body: { path: EXAMPLE } }),
    ]);
    const url = `${location.protocol}//${location.hostname}:${gateway.port}${EXAMPLE}`;
    keep({ step: 'live', id, url, answer: answer.body ?? '' });
  } catch (thrown) {
    keep({ step: 'failed', error: toApiError(thrown) });
    invalidate('/api/stats');
  }
  isWaiting = false;
}

/** The endpoint, also where an earlier attempt has made it. */
async function draft(): Promise<{ readonly id: string }> {
  const [endpoint] = await get('GET /api/overview/endpoints', {
    query: { search: `GET *${ROUTE.path}`, limit: 1 },
  });
  if (endpoint) return endpoint;
  return get('POST /api/endpoints', { body: { ...ROUTE, name: 'hello', code: CODE } });
}

/** Whether it is offered, or goes on, although there is an endpoint now. */
export const isShowingFirstEndpoint = () => state.value.step !== 'offered';
