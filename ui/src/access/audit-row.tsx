/** One entry of the audit. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { Ago, At, Badge } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { AuditEntry } from '../generated/routes.js';
import { AuditedId } from './audited-id.js';
import { ChangeTable } from './change-table.js';

export function AuditRow({ entry }: { readonly entry: AuditEntry }) {
  const { actor, outcome, status, at } = entry;
  const signedIn = whoSignedIn(entry);
  // A page of entries is there much sooner without the details of each.
  const [wasOpened, setWasOpened] = useState(false);
  return (
    <li>
      <details onToggle={() => setWasOpened(true)}>
        <summary>
          <span class="what">
            <strong>
              <Visible text={signedIn ?? nameOf(actor)} isOneLine />
            </strong>{' '}
            {sentenceOf(entry)}
            {signedIn === undefined && (
              <>
                {' '}
                <Subject entry={entry} />
                <Served entry={entry} />
              </>
            )}
          </span>
          {outcome === 'refused' && <Badge tone="bad">{`refused, ${status}`}</Badge>}
          <span class="muted small">
            <Ago at={at} />
          </span>
        </summary>
        {wasOpened && <Details entry={entry} />}
      </details>
    </li>
  );
}

/** Nobody is known who asks to sign in; who has done it is. */
function whoSignedIn({ method, action, outcome, after }: AuditEntry): string | undefined {
  const email = after?.['email'];
  const isSignIn = method === 'POST' && action === '/api/session' && outcome === 'changed';
  return isSignIn && typeof email === 'string' ? email : undefined;
}

function Details({ entry }: { readonly entry: AuditEntry }) {
  const { actor, address, request_id, method, action, status, at } = entry;
  const { object_kind, object_id, before, after, names } = entry;
  return (
    <div class="stack tight">
      {[before, after].some((one) => Object.keys(one ?? {}).length > 0) && (
        <ChangeTable before={before} after={after} names={names} />
      )}
      <dl class="facts">
        <dt>At</dt>
        <dd>
          <At at={at} />
        </dd>
        <dt>Who</dt>
        <dd>
          <span title={typeof actor['id'] === 'string' ? actor['id'] : undefined}>
            <Visible text={nameOf(actor)} isOneLine />
          </span>
          , from <code>{address}</code>
          <OnBehalf entry={entry} />
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
              {object_kind} <AuditedId id={object_id} kind={object_kind} names={names} />
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

/** What somebody did, and what they wanted to do, by method and last word of a route. `%` is the kind of the object. */
const VERBS: Readonly<Record<string, readonly [string, string]>> = {
  'POST session': ['signed in', 'sign in as'],
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
  GET: ['read %', 'read %'],
  POST: ['changed the %', 'change the %'],
  PUT: ['changed the %', 'change the %'],
  DELETE: ['deleted the %', 'delete the %'],
};

function sentenceOf({ method, action, outcome, before, object_kind, object_id }: AuditEntry): string {
  const words = action.split('/').filter((word) => word !== '' && !word.includes('{'));
  const isMaking = method === 'POST' && before === null && !action.includes('{');
  const [did, want] =
    VERBS[`${method} ${words.at(-1)}`] ?? (isMaking ? MAKING : (BY_METHOD[method] ?? [method, method]));
  // What is only read is told apart by its address alone.
  const noun = method === 'GET' ? action : (object_kind ?? (object_id === null ? action : 'object'));
  return outcome === 'refused' ? `was refused to ${want.replace('%', noun)}` : did.replace('%', noun);
}

/** A name by which one knows the object; its id where it has none. */
function Subject({ entry: { before, after, object_id, names } }: { readonly entry: AuditEntry }) {
  const candidates = ['name', 'email', 'host', 'title', 'path', 'key'].map(
    (member) => after?.[member] ?? before?.[member],
  );
  const made = names[String(after?.['import_id'] ?? after?.['apply_id'])]?.name;
  const name =
    names[object_id ?? '']?.name ??
    made ??
    candidates.find((value): value is string => typeof value === 'string');
  return (
    <span class="muted" title={object_id ?? undefined}>
      {name === undefined ? (
        object_id
      ) : (
        <>
          “<Visible text={name} isOneLine />”
        </>
      )}
    </span>
  );
}

/** Which versions served before, and which do now. */
function Served({ entry: { before, after, names } }: { readonly entry: AuditEntry }) {
  const [was, is] = [before, after].map(
    (members) => names[String(members?.['confirmed_deployment_id'])]?.name,
  );
  if (is === undefined) return null;
  return <>: {was === undefined ? is : `${was} → ${is.replace(/^version /, '')}`}</>;
}

/** Whose token it was, or which import. */
function OnBehalf({ entry: { actor, names } }: { readonly entry: AuditEntry }) {
  const id = actor['user_id'] ?? actor['import_id'];
  if (typeof id !== 'string') return null;
  return (
    <>
      {', '}
      {actor['user_id'] === undefined ? 'of the import' : 'of'} <AuditedId id={id} names={names} />
    </>
  );
}
