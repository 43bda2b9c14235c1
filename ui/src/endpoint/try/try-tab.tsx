/** Sends requests to any version of an endpoint, deployed or not. */
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { type ApiError, call } from '../../api/client.js';
import { toApiError, useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { Button, SelectField, TextArea, TextField } from '../../base/controls.js';
import { copyText } from '../../base/copy.js';
import { useDraft } from '../../base/draft.js';
import { Empty, ErrorNotice } from '../../base/notices.js';
import { isAtOneOf, problemAt } from '../../base/problems.js';
import { Method } from '../../base/text.js';
import { done } from '../../base/toasts.js';
import type { Endpoint, Invocation } from '../../generated/routes.js';
import { addressOf, useOrigin } from '../address.js';
import { useFollowedDraft } from '../code/draft.js';
import { servingVersion } from '../serve.js';
import { Answer } from './answer.js';
import { forget, looksSecret, type PastTrial, pastTrials, remember, withoutSecrets } from './history.js';
import { Pairs } from './pairs.js';
import { PastTrials } from './past-trials.js';
import { type Sample, sampleOf } from './sample.js';
import { bodyOf, curlOf, hasBody, parametersOf, pathOf, type Trial } from './trial.js';

const EMPTY: Trial = { path: {}, query: [], headers: [], body: '' };

interface TryProps {
  readonly endpoint: Endpoint;
}

export function TryTab({ endpoint }: TryProps) {
  if (endpoint.latest_version !== null) return <TryForm endpoint={endpoint} />;
  return <NothingToTry endpoint={endpoint} />;
}

/** An endpoint that was imported comes without a version: the way to one is here. */
function NothingToTry({ endpoint }: TryProps) {
  const draft = useFollowedDraft(endpoint);
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [, navigate] = useLocation();
  const compile = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await draft.compile();
      // What is wrong with it is said at its place; a version that has come of it is tried here.
      if (draft.theirs.peek() || draft.checked.peek()?.hasFailed) navigate(addressOf(endpoint, 'code'));
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <>
      <Empty title="Nothing to try yet">
        <p>Each version that compiles can be tried, before it is deployed.</p>
        {may('endpoints:deploy') && (
          <Button look="primary" isDisabled={isBusy} onClick={() => void compile()}>
            {isBusy ? 'Compiling …' : 'Compile it'}
          </Button>
        )}
      </Empty>
      {error && <ErrorNotice error={error} />}
    </>
  );
}

function TryForm({ endpoint }: TryProps) {
  const { id, method, route } = endpoint;
  const sample = useSample(endpoint);
  // A reload loses nothing of it but what looks secret.
  const [written, setWritten] = useDraft<Partial<Trial>>(`try-${id}`, {}, keptOf);
  const [version, setVersion] = useVersion(endpoint);
  const [answer, setAnswer] = useState<Invocation>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [past, setPast] = useState<readonly PastTrial[]>(() => pastTrials(id));
  const [, navigate] = useLocation();
  const origin = useOrigin(endpoint);
  const versions = useVersions(endpoint, version);
  const { offered = [], ...example }: Partial<Sample> & Trial = sample ?? EMPTY;
  // The document may be read after one has begun to type.
  const trial = { ...example, ...written, path: { ...example.path, ...written.path } };
  const write = (change: Partial<Trial>) => setWritten((before) => ({ ...before, ...change }));
  const send = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const body = { ...bodyOf(method, route, trial), version: Number(version) };
      const { data } = await call('POST /api/endpoints/{id}/invoke', { params: { id }, body });
      setAnswer(data);
      remember(id, { at: new Date().toISOString(), version: data.version, status: data.status, trial });
      setPast(pastTrials(id));
    } catch (thrown) {
      setAnswer(undefined);
      setError(toApiError(thrown));
    }
    setBusy(false);
  };
  const queue = async () => {
    setError(undefined);
    try {
      await call('POST /api/endpoints/{id}/enqueue', { params: { id }, body: bodyOf(method, route, trial) });
      done('It is queued, for what serves when its turn comes.', {
        label: 'See what becomes of it',
        run: async () => navigate(`${addressOf(endpoint, 'settings')}?section=jobs`),
      });
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  const problemOf = (member: string) => problemAt(error, `body.${member}`);
  const isAtField = isAtOneOf(error, ['body.path', 'body.headers', 'body.body']);
  return (
    <div class="try">
      <form
        class="card pad stack"
        aria-label="Request"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <div class="try-line mono">
          <Method name={method} /> {pathOf(route, trial)}
        </div>
        {parametersOf(route).map(({ name, isRest }) => (
          <TextField
            key={name}
            label={name}
            hint={isRest ? 'The rest of the path, with its slashes' : 'In the path'}
            required
            value={trial.path[name] ?? ''}
            onInput={(value) => write({ path: { ...written.path, [name]: value } })}
          />
        ))}
        <Problem text={problemOf('path')} />
        <Pairs
          label="Query"
          of="parameter"
          pairs={trial.query}
          offered={offered}
          onInput={(query) => write({ query })}
        />
        <Pairs label="Headers" of="header" pairs={trial.headers} onInput={(headers) => write({ headers })} />
        <Problem text={problemOf('headers')} />
        {hasBody(method) && (
          <TextArea
            label="Body"
            rows={8}
            problem={problemOf('body')}
            value={trial.body}
            onInput={(body) => write({ body })}
          />
        )}
        <SelectField label="Version" value={version} options={versions} onChange={setVersion} />
        <div class="actions">
          <Button look="primary" isSubmit isDisabled={isBusy}>
            Send
          </Button>
          {may('jobs:write') && (
            <Button
              onClick={({ currentTarget }) =>
                (currentTarget as HTMLButtonElement).form?.reportValidity() ? queue() : undefined
              }
            >
              Queue it
            </Button>
          )}
          {origin !== undefined && (
            <Button
              onClick={async ({ currentTarget }) => {
                const text = curlOf(method, `${origin}${pathOf(route, trial)}`, trial);
                const isCopied = await copyText(text, currentTarget as HTMLElement);
                done(isCopied ? 'Copied; curl asks the gateway for what serves now.' : text);
              }}
            >
              Copy as curl
            </Button>
          )}
        </div>
      </form>
      <div class="stack">
        {error && !isAtField && <ErrorNotice error={error} />}
        {isBusy && (
          <p class="muted" role="status">
            Sending …
          </p>
        )}
        {answer && <Answer endpoint={endpoint} answer={answer} />}
        <PastTrials
          past={past}
          route={route}
          method={method}
          onChoose={(chosen) => {
            setWritten(chosen.trial);
            if (chosen.version !== null) setVersion(String(chosen.version));
            setAnswer(undefined);
            setError(undefined);
          }}
          onForget={() => {
            forget(id);
            setPast([]);
          }}
        />
      </div>
    </div>
  );
}

/** Unlike what is kept for longer, with a body that is not JSON, unless it looks secret. */
function keptOf(written: Partial<Trial>): Partial<Trial> {
  const { body = '' } = written;
  const withoutBody = withoutSecrets({ ...EMPTY, ...written });
  const isPlain = withoutBody.body === '' && !looksSecret(body);
  const safe = { ...withoutBody, ...(isPlain && { body }) };
  return Object.fromEntries(Object.keys(written).map((part) => [part, safe[part as keyof Trial]]));
}

function Problem({ text }: { readonly text: string | undefined }) {
  return text === undefined ? null : (
    <p class="problem small" role="alert">
      {text}
    </p>
  );
}

/** What the document says that the endpoint was imported from; read once. */
function useSample({ id, domain, method, path, route }: Endpoint): Sample | undefined {
  const [sample, setSample] = useState<Sample>();
  useEffect(() => {
    const abort = new AbortController();
    call('GET /api/export/openapi', { query: { domain, endpoint_id: id } }, abort.signal).then(
      ({ data: { documents } }) => setSample(sampleOf(documents, method, [path, route])),
      // There need not be one, nor may everybody see it.
      () => undefined,
    );
    return () => abort.abort();
  }, [id, domain, method, path, route]);
  return sample;
}

/** The version that was chosen; else the one that serves most, or the newest. */
function useVersion(endpoint: Endpoint) {
  const [chosen, setChosen] = useState<string>();
  return [chosen ?? String(servingVersion(endpoint) ?? endpoint.latest_version), setChosen] as const;
}

const LISTED = 100;

/** The newest versions, and those that serve or are chosen, which may be older. */
function useVersions({ id, running, deployment }: Endpoint, chosen: string) {
  const { data = [] } = useQuery('GET /api/endpoints/{id}/versions', {
    params: { id },
    query: { limit: LISTED },
  });
  const shares = new Map(
    running ? deployment?.targets.map(({ version, percent }) => [version, percent]) : [],
  );
  const messages = new Map(data.map(({ version, message }) => [version, message]));
  const numbers = new Set([...messages.keys(), ...shares.keys(), Number(chosen)]);
  return [...numbers]
    .sort((left, right) => right - left)
    .map((version) => {
      const message = messages.get(version) ?? null;
      const said = message === null ? '' : `: ${message.slice(0, 60)}`;
      return { value: String(version), label: `Version ${version}${servesOf(shares.get(version))}${said}` };
    });
}

function servesOf(percent: number | undefined): string {
  if (percent === undefined) return '';
  return percent === 100 ? ', which serves now' : `, which serves ${percent} % now`;
}
