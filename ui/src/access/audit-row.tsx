/** One entry of the audit. */
import { Link } from 'wouter-preact';
import { Ago, At, Badge } from '../base/text.js';
import type { AuditEntry } from '../generated/routes.js';
import { ChangeTable } from './change-table.js';

export function AuditRow({ entry }: { readonly entry: AuditEntry }) {
  const { actor, outcome, status, object_kind: kind, at } = entry;
  return (
    <li>
      <details>
        <summary>
          <span class="what">
            <strong>{nameOf(actor)}</strong> {sentenceOf(entry)} {kind !== null && <span>{kind}</span>}{' '}
            <span class="muted">{subjectOf(entry)}</span>
          </span>
          {outcome === 'refused' && <Badge tone="bad">{`refused, ${status}`}</Badge>}
          <span class="muted small">
            <Ago at={at} />
          </span>
        </summary>
        <Details entry={entry} />
      </details>
    </li>
  );
}

function Details({ entry }: { readonly entry: AuditEntry }) {
  const { actor, address, request_id, method, action, status, object_kind, object_id, before, after, at } =
    entry;
  const page = pageOf(object_kind, object_id);
  return (
    <div class="stack tight">
      {(before !== null || after !== null) && <ChangeTable before={before} after={after} />}
      <dl class="facts">
        <dt>At</dt>
        <dd>
          <At at={at} />
        </dd>
        <dt>Who</dt>
        <dd>
          {nameOf(actor)}, from <code>{address}</code>
          {typeof actor['id'] === 'string' && (
            <>
              {' · '}
              <Link href={filterPath({ actor_id: actor['id'] })}>all of theirs</Link>
            </>
          )}
        </dd>
        <dt>Request</dt>
        <dd>
          <code>
            {method} {action}
          </code>
          , answered with {status}
          {' · '}
          <Link href={filterPath({ request_id })}>
            <code>{request_id}</code>
          </Link>
        </dd>
        {object_kind !== null && object_id !== null && (
          <>
            <dt>Object</dt>
            <dd>
              {page === undefined ? object_kind : <Link href={page}>{object_kind}</Link>}{' '}
              <code>{object_id}</code>
              {' · '}
              <Link href={filterPath({ object_kind, object_id })}>all about it</Link>
            </dd>
          </>
        )}
      </dl>
    </div>
  );
}

function filterPath(filter: Readonly<Record<string, string>>): string {
  return `/ui/access/audit?${new URLSearchParams(filter)}`;
}

const KINDS: Readonly<Record<string, string>> = {
  api_key: 'Whoever has API_KEY',
  anonymous: 'Somebody',
  internal: 'The gateway',
  import: 'An import',
};

function nameOf({ kind, email, name }: AuditEntry['actor']): string {
  if (kind === 'token') return `The token “${String(name)}”`;
  if (typeof email === 'string') return email;
  return KINDS[String(kind)] ?? String(kind);
}

const VERBS: Readonly<Record<string, readonly [string, string]>> = {
  POST: ['did', 'wanted to do'],
  PUT: ['changed the', 'wanted to change the'],
  DELETE: ['deleted the', 'wanted to delete the'],
};

/** What they did, in the words of the route. */
function sentenceOf({ method, action, outcome, before, after }: AuditEntry): string {
  const isRefused = outcome === 'refused';
  const last = action.split('/').at(-1) ?? '';
  if (method === 'POST' && before === null && after !== null && /^[a-z]+s$/.test(last))
    return isRefused ? 'wanted to make the' : 'made the';
  if (method === 'POST' && last !== '' && !last.includes('{'))
    return isRefused ? `wanted to ${last}:` : `used ${last}:`;
  const [did, wanted] = VERBS[method] ?? [method, method];
  return isRefused ? wanted : did;
}

/** A name by which one knows the object. */
function subjectOf({ before, after, object_id }: AuditEntry): string {
  for (const name of ['name', 'email', 'host', 'title', 'path']) {
    const value = after?.[name] ?? before?.[name];
    if (typeof value === 'string') return `“${value}”`;
  }
  return object_id ?? '';
}

const PAGES: Readonly<Record<string, string>> = {
  endpoint: '/ui/endpoints/',
  service: '/ui/services/',
  import: '/ui/imports/',
  build: '/ui/builds/',
};

function pageOf(kind: string | null, id: string | null): string | undefined {
  const beginning = PAGES[kind ?? ''];
  return beginning === undefined || id === null ? undefined : beginning + encodeURIComponent(id);
}
