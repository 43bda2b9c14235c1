/** One entry of the audit. */
import { Link } from 'wouter-preact';
import { Ago, At, Badge } from '../base/text.js';
import type { AuditEntry } from '../generated/routes.js';
import { ChangeTable } from './change-table.js';

export function AuditRow({ entry }: { readonly entry: AuditEntry }) {
  const { actor, outcome, status, at } = entry;
  return (
    <li>
      <details>
        <summary>
          <span class="what">
            <strong>{nameOf(actor)}</strong> {sentenceOf(entry)} <span class="muted">{subjectOf(entry)}</span>
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
      {[before, after].some((one) => Object.keys(one ?? {}).length > 0) && (
        <ChangeTable before={before} after={after} />
      )}
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

/** By method and last word of a route: what somebody did, and what they wanted to do. `%` is the kind of the object. */
const VERBS: Readonly<Record<string, readonly [string, string]>> = {
  'POST session': ['signed in', 'sign in'],
  'DELETE session': ['signed out', 'sign out'],
  'POST compile': ['compiled the %', 'compile the %'],
  'POST start': ['started the %', 'start the %'],
  'POST stop': ['stopped the %', 'stop the %'],
  'POST deploy': ['deployed the %', 'deploy the %'],
  'POST rollback': ['rolled back the %', 'roll back the %'],
  'POST invoke': ['called the %', 'call the %'],
  'POST activate': ['activated the %', 'activate the %'],
  'POST deactivate': ['deactivated the %', 'deactivate the %'],
  'POST test': ['tested the %', 'test the %'],
  'POST bundle': ['imported a ZIP', 'import a ZIP'],
  'POST openapi': ['imported a document', 'import a document'],
  'POST objects': ['uploaded a file', 'upload a file'],
  'DELETE sessions': ['ended sessions of the %', 'end sessions of the %'],
  'DELETE tokens': ['revoked the %', 'revoke the %'],
};
const MAKING = ['made the %', 'make the %'] as const;
const BY_METHOD: Readonly<Record<string, readonly [string, string]>> = {
  POST: ['changed the %', 'change the %'],
  PUT: ['changed the %', 'change the %'],
  DELETE: ['deleted the %', 'delete the %'],
};

function sentenceOf({ method, action, outcome, before, object_kind, object_id }: AuditEntry): string {
  const words = action.split('/').filter((word) => word !== '' && !word.includes('{'));
  const isMaking = method === 'POST' && before === null && !action.includes('{');
  const [did, want] =
    VERBS[`${method} ${words.at(-1)}`] ?? (isMaking ? MAKING : (BY_METHOD[method] ?? [method, method]));
  const noun = object_kind ?? (object_id === null ? action : 'object');
  return outcome === 'refused' ? `was refused to ${want.replace('%', noun)}` : did.replace('%', noun);
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
