/** The table `acme_challenges`: what ACME servers ask gateways while certificates are ordered. */
import type { Store } from './database.js';

/** How an ACME server finds out whether a host leads here. */
export const CHALLENGE_TYPES = ['http-01', 'tls-alpn-01'] as const;
export type ChallengeType = (typeof CHALLENGE_TYPES)[number];

/** A row. */
export interface AcmeChallenge {
  readonly token: string;
  readonly domain_id: string;
  /** In lower case. */
  readonly host: string;
  readonly type: ChallengeType;
  /** What the server expects by `http-01`. */
  readonly answer: string;
  /** The certificate that it expects by `tls-alpn-01`, PEM; otherwise null. */
  readonly chain: string | null;
  readonly key_encrypted: string | null;
}

/** Should its worker be lost, it is answered no longer than this. */
const LIFE = "interval '10 minutes'";

/** Gateways are to answer it from now on. */
export async function addChallenge(store: Store, challenge: AcmeChallenge): Promise<void> {
  await store
    .knex('acme_challenges')
    .insert({ ...challenge, expires_at: store.knex.raw(`clock_timestamp() + ${LIFE}`) })
    .onConflict('token')
    .merge();
  store.announce('acme_challenge', challenge.domain_id);
}

export async function removeChallenge(store: Store, { token, domain_id }: AcmeChallenge): Promise<void> {
  await store.knex('acme_challenges').where({ token }).delete();
  store.announce('acme_challenge', domain_id);
}

/** Those that are to be answered, by token. */
export async function pendingChallenges(store: Store): Promise<AcmeChallenge[]> {
  return store
    .knex<AcmeChallenge>('acme_challenges')
    .whereRaw('expires_at > clock_timestamp()')
    .orderBy('token')
    .select('token', 'domain_id', 'host', 'type', 'answer', 'chain', 'key_encrypted');
}

export async function dropExpiredChallenges(store: Store): Promise<void> {
  await store.knex('acme_challenges').whereRaw('expires_at <= clock_timestamp()').delete();
}

/** Whether a gateway answers a challenge, as its row says (`src/gateway/front/challenges.ts`), or is gone. */
export async function isAnswering(store: Store, nodeId: string, token: string): Promise<boolean> {
  const node = await store
    .knex('nodes')
    .where({ id: nodeId })
    .first<{ is_answering: boolean } | undefined>(
      store.knex.raw(`info->'challenges' @> to_jsonb(?::text) AS is_answering`, [token]),
    );
  return node === undefined || node.is_answering === true;
}
