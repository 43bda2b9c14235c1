/** What a version has answered. */
import { Button } from '../../base/controls.js';
import { Badge, bytes, duration, type Tone } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { Invocation } from '../../generated/routes.js';

export function Answer({ answer }: { readonly answer: Invocation }) {
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
        <details>
          <summary>Headers ({Object.keys(headers).length})</summary>
          <dl class="facts mono small header-list">
            {Object.entries(headers).map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>
                  <Visible text={value} />
                </dd>
              </>
            ))}
          </dl>
        </details>
        <div class="stack tight">
          <h3>Log lines</h3>
          {logs.length === 0 ? (
            <p class="muted small">This version has printed nothing.</p>
          ) : (
            <pre class="code-block small">
              <Visible text={logs.join('\n')} />
            </pre>
          )}
        </div>
      </div>
    </section>
  );
}

function toneOf(status: number): Tone {
  if (status >= 500) return 'bad';
  return status >= 400 ? 'warn' : 'ok';
}

function Body({ answer: { body, body_base64, headers } }: { readonly answer: Invocation }) {
  if (body_base64 !== undefined) return <Binary base64={body_base64} type={headers['content-type'] ?? ''} />;
  if (body === undefined || body === '') return <p class="muted">The body is empty.</p>;
  return (
    <pre class="code-block answer-body">
      <Visible text={pretty(body)} />
    </pre>
  );
}

/** JSON on several lines; anything else as it is. Numbers that JavaScript would change stay as they were sent. */
export function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    const printed = JSON.stringify(value, null, 2);
    const digits = (json: string) => json.replace(/\s/g, '').length;
    return typeof value === 'object' && digits(printed) === digits(text) ? printed : text;
  } catch {
    return text;
  }
}

function Binary({ base64, type }: { readonly base64: string; readonly type: string }) {
  const content = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const save = () => {
    const url = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'answer';
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <div class="row-inline">
      <span>
        {bytes(content.length)} that are no text{type !== '' && `, ${type}`}
      </span>
      <Button isSmall onClick={save}>
        Save as a file
      </Button>
    </div>
  );
}
