/** How a service stands, in a word and a number, and what one may do with it. */
import { may, me } from '../api/session.js';
import { Ago, Badge, duration, type Tone } from '../base/text.js';
import type { Service } from '../generated/routes.js';
import { outcomes } from './tests.js';

const TONES: Readonly<Record<Service['state'], Tone>> = {
  connected: 'ok',
  connecting: 'warn',
  unreachable: 'bad',
  failed: 'bad',
  inactive: 'idle',
};

export function ServiceState({ service: { state, enabled } }: { readonly service: Service }) {
  return <Badge tone={TONES[state]}>{enabled ? state : 'disabled'}</Badge>;
}

/** How the last test by this browser went: only that is known here. */
export function LastTest({ id }: { readonly id: string }) {
  const outcome = outcomes.value[id];
  if (!outcome) return <span class="muted">none</span>;
  return outcome.connected ? (
    <span class="number">
      {duration(outcome.latency_ms)}, <Ago at={outcome.at} />
    </span>
  ) : (
    <span class="bad-text">
      failed <Ago at={outcome.at} />
    </span>
  );
}

export const TYPE_NAMES: Readonly<Record<Service['service_type'], string>> = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  redis: 'Redis',
  mongodb: 'MongoDB',
  objstore: 'Object storage (S3)',
  memcached: 'Memcached',
  ftp: 'FTP and SFTP',
  http: 'HTTP',
  email: 'Email (SMTP)',
};
const TYPES = Object.keys(TYPE_NAMES) as Service['service_type'][];

/** What one may make: SQLite is a file of the machine, which belongs to no host. */
export function typesToMake(): readonly Service['service_type'][] {
  return me.value?.domains === null ? TYPES : TYPES.filter((type) => type !== 'sqlite');
}

/** Whoever is limited to some hosts changes no service that others have a share in. */
export function mayChange({ domains }: Service): boolean {
  const hosts = me.value?.domains;
  const isOwn = !hosts || (domains.length > 0 && domains.every((host) => hosts.includes(host)));
  return isOwn && may('services:write');
}
