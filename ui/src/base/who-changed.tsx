/** The way from an object to what the audit has of it. */
import { Link } from 'wouter-preact';
import { may } from '../api/session.js';

interface WhoChangedProps {
  readonly kind: 'endpoint' | 'collection' | 'domain' | 'service';
  readonly id: string;
}

/** A link after other text; nothing for those who may not read the audit. */
export function WhoChanged({ kind, id }: WhoChangedProps) {
  if (!may('audit:read')) return null;
  return (
    <>
      {' · '}
      <Link href={`/ui/access/audit?object_kind=${kind}&object_id=${id}&outcome=changed`}>
        Who changed this?
      </Link>
    </>
  );
}
