/** One operation: what it takes, what it answers, and a form to call it. */
import { Link, useLocation } from 'wouter-preact';
import { may } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { Method } from '../base/text.js';
import { CallForm } from './call-form.js';
import type { Content, Json, Operation } from './document.js';
import { exampleOf } from './example.js';
import { Prose } from './prose.js';
import type { Destination } from './request.js';
import { BodySchema, kindOf } from './schema-tree.js';

interface OperationViewProps {
  readonly document: Json;
  readonly operation: Operation;
  readonly destination: Destination;
}

export function OperationView({ document, operation, destination }: OperationViewProps) {
  const { method, path, summary, description, isDeprecated, parameters, bodies, answers } = operation;
  const [location] = useLocation();
  const [params] = useAddress();
  const all = new URLSearchParams(params);
  all.delete('op');
  const mayCall = destination.kind === 'gateway' || may('endpoints:deploy');
  return (
    <article class="operation" aria-labelledby="operation">
      <Link class="back" href={`${location}?${all}`}>
        All operations
      </Link>
      <h2 id="operation">
        <Method name={method} /> <span class="mono">{path}</span>
      </h2>
      {isDeprecated && <p class="notice warn">It is deprecated.</p>}
      {summary !== '' && (
        <p>
          <Prose text={summary} />
        </p>
      )}
      {description !== '' && (
        <p class="muted prose">
          <Prose text={description} />
        </p>
      )}
      {parameters.length > 0 && (
        <section class="stack tight">
          <h3>Parameters</h3>
          <ul class="schema">
            {parameters.map(({ name, place, isRequired, description, schema }) => (
              <li key={`${place} ${name}`} class="leaf">
                <code class="name">{name}</code>{' '}
                <span class="muted small">
                  in {place}, {kindOf(document, schema)}
                  {isRequired && <strong>, required</strong>}
                </span>
                {description !== '' && (
                  <span class="small description">
                    <Prose text={description} />
                  </span>
                )}
              </li>
            ))}
          </ul>
        </section>
      )}
      {bodies.length > 0 && (
        <section class="stack tight">
          <h3>Body</h3>
          {bodies.map((body) => (
            <ContentView key={body.mediaType} document={document} content={body} />
          ))}
        </section>
      )}
      {mayCall && <CallForm document={document} operation={operation} destination={destination} />}
      <section class="stack tight">
        <h3>Answers</h3>
        {answers.map(({ status, description, contents }) => (
          <details key={status} class="more answer" open={/^2/.test(status)}>
            <summary>
              <span class={`status s${status[0]}`}>{status}</span>{' '}
              <span class="prose">
                <Prose text={description.split('\n', 1)[0] ?? ''} />
              </span>
            </summary>
            <div class="stack tight">
              {description.includes('\n') && (
                <p class="small prose">
                  <Prose text={description} />
                </p>
              )}
              {contents.map((content) => (
                <ContentView key={content.mediaType} document={document} content={content} />
              ))}
              {contents.length === 0 && <p class="muted">Without a body.</p>}
            </div>
          </details>
        ))}
        {answers.length === 0 && <p class="muted">The document names none.</p>}
      </section>
    </article>
  );
}

interface ContentViewProps {
  readonly document: Json;
  readonly content: Content;
}

function ContentView({ document, content: { mediaType, schema, example } }: ContentViewProps) {
  const isJson = /json/.test(mediaType);
  return (
    <div class="stack tight">
      <code class="muted">{mediaType}</code>
      <BodySchema document={document} schema={schema} />
      {isJson && schema !== undefined && (
        <details>
          <summary class="small muted">Example</summary>
          <pre class="code-block">{JSON.stringify(example ?? exampleOf(document, schema), null, 2)}</pre>
        </details>
      )}
    </div>
  );
}
