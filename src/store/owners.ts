/** Who takes turns for what endpoints need (`src/model/owner.ts`), in SQL. */
import { WITHOUT_DOMAIN } from '../model/owner.js';
import type { Store } from './database.js';

/** SQL: the owner of what is served at a host. @param host SQL */
export function ownerOfHost(host: string): string {
  return `CASE WHEN EXISTS (SELECT FROM domains WHERE domains.host = ${host}) THEN ${host} ELSE '${WITHOUT_DOMAIN}' END`;
}

/** Whose turns: those of owners, or those of the parts of owners (`src/util/turns.ts`). */
export type TurnsOf = 'owners' | 'parts';

/** SQL: who takes turns, as `turnOf` of `src/model/owner.ts` says. @param principal, domain SQL */
export function turnBy(turnsOf: TurnsOf, principal: string, domain: string): string {
  const owner = `coalesce(${principal}, ${domain})`;
  return turnsOf === 'owners' ? owner : `(${owner} || ' ' || ${domain})`;
}

/** The owner of what is served at a host. @param host in lower case */
export async function findOwnerOfHost({ knex }: Store, host: string): Promise<string> {
  const { rows } = await knex.raw<{ rows: { owner: string }[] }>(
    `SELECT ${ownerOfHost('request.host')} AS owner FROM (SELECT ?::text AS host) AS request`,
    [host],
  );
  return rows[0]?.owner ?? WITHOUT_DOMAIN;
}
