/** Builds that do not end as long as a test wants: a worker that is alive cannot record what it has built. */
import pg from 'pg';

export interface HeldBuilds {
  release(): Promise<void>;
}

export async function holdBuilds(databaseUrl: string): Promise<HeldBuilds> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query('BEGIN; LOCK TABLE artifacts IN SHARE ROW EXCLUSIVE MODE');
  // The lock ends with the connection.
  return { release: () => client.end() };
}
