/** An object or a person that the audit has by id: the name, with the id beside it, and a link where there is a page. */
import { Link } from 'wouter-preact';
import { may, type Permission } from '../api/session.js';
import { Visible } from '../base/visible.js';
import type { AuditEntry } from '../generated/routes.js';

const PAGES: Readonly<Record<string, readonly [beginning: string, needs: Permission]>> = {
  domain: ['/ui/domains/', 'domains:read'],
  collection: ['/ui/collections/', 'collections:read'],
  endpoint: ['/ui/endpoints/', 'endpoints:read'],
  service: ['/ui/services/', 'services:read'],
  import: ['/ui/imports/', 'imports:read'],
  build: ['/ui/builds/', 'builds:read'],
};

interface AuditedIdProps {
  readonly id: string;
  /** Where the audit has no name of it. */
  readonly kind?: string;
  readonly names: AuditEntry['names'];
}

export function AuditedId({ id, kind, names }: AuditedIdProps) {
  const named = names[id];
  const shown = named === undefined ? <code>{id}</code> : <Visible text={named.name} isOneLine />;
  const [beginning, needs] = PAGES[named?.kind ?? kind ?? ''] ?? [];
  if (beginning === undefined || needs === undefined || !may(needs)) return <span title={id}>{shown}</span>;
  return (
    <Link href={beginning + encodeURIComponent(id)} title={id}>
      {shown}
    </Link>
  );
}
