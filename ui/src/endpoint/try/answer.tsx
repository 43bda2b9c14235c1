/** What a version has answered. */
import { Fragment } from 'preact';
import { Link } from 'wouter-preact';
import { bytesOf } from '../../base/binary.js';
import { Button } from '../../base/controls.js';
import { saveFile } from '../../base/download.js';
import { pretty } from '../../base/pretty.js';
import { Badge, bytes, count, duration, type Tone } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { Endpoint, Invocation } from '../../generated/routes.js';
import { addressOfPlace, withCodePlaces } from '../code-place.js';
import { BindService } from '../trouble.js';

/** More makes the page slow, and nobody reads it. */
const MOST_SHOWN = 100_000;

interface AnswerProps {
  readonly endpoint: Endpoint;
  readonly answer: Invocation;
}

export function Answer({ endpoint, answer }: AnswerProps) {
  const { status, duration_ms, version, request_id, headers, logs } = answer;
  return (
    <section class="card" aria-label="Answer">
      <header>
        <div class="row-inline" role="status">
          <Badge tone={toneOf(status)}>{String(status)}</Badge>
          <span class="number">{duration(duration_ms)}</span>
          <span class="muted">version {version}</span>
        </div>
        <span class="small muted">
          request <code>{request_id}</code>
        </span>
      </header>
      <div class="pad-in stack">
        <Body answer={answer} />
        {status >= 500 && <BindService endpoint={endpoint} said={[answer.body, ...logs].join('\n')} />}
        <details>
          <summary>Headers ({Object.keys(headers).length})</summary>
          <dl class="facts mono small header-list">
            {Object.entries(headers).map(([name, value]) => (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd>
                  <Visible text={value} />
                </dd>
              </Fragment>
            ))}
          </dl>
        </details>
        <div class="stack tight">
          <h2 class="small">Log lines</h2>
          {logs.length === 0 ? (
            <p class="muted small">This version has printed nothing.</p>
          ) : (
            <pre class="code-block small">
              <WithPlaces endpoint={endpoint} text={logs.join('\n')} />
            </pre>
          )}
        </div>
      </div>
    </section>
  );
}

/** Text in which places of the code, such as those of panics, are links to them. */
function WithPlaces({ endpoint, text }: { readonly endpoint: Endpoint; readonly text: string }) {
  return (
    <>
      {withCodePlaces(endpoint, text).map((part, index) =>
        typeof part === 'string' ? (
          <Visible key={index} text={part} />
        ) : (
          <Link key={index} href={addressOfPlace(endpoint.id, part)}>
            <Visible text={`${part.file}:${part.line}:${part.column}`} />
          </Link>
        ),
      )}
    </>
  );
}

function toneOf(status: number): Tone {
  if (status >= 500) return 'bad';
  return status >= 400 ? 'warn' : 'ok';
}

function Body({ answer: { body, body_base64, headers } }: { readonly answer: Invocation }) {
  if (body_base64 !== undefined) return <Binary base64={body_base64} type={headers['content-type'] ?? ''} />;
  if (body === undefined || body === '') return <p class="muted">The body is empty.</p>;
  const shown = pretty(body);
  const isLong = shown.length > MOST_SHOWN;
  return (
    <>
      <pre class="code-block answer-body">
        <Visible text={isLong ? shown.slice(0, MOST_SHOWN) : shown} />
      </pre>
      {isLong && (
        <div class="row-inline">
          <span class="muted small">
            The first {count(MOST_SHOWN)} of {count(shown.length)} characters.
          </span>
          <Button isSmall onClick={() => saveFile('answer', body)}>
            Save all of it as a file
          </Button>
        </div>
      )}
    </>
  );
}

function Binary({ base64, type }: { readonly base64: string; readonly type: string }) {
  const content = bytesOf({ base64 });
  return (
    <div class="row-inline">
      <span>
        {bytes(content.length)} that are no text
        {type !== '' && (
          <>
            , <Visible text={type} isOneLine />
          </>
        )}
      </span>
      <Button isSmall onClick={() => saveFile('answer', content)}>
        Save as a file
      </Button>
    </div>
  );
}
