/** One order of a certificate from an ACME server (RFC 8555), by the library `acme-client`. */
import { generateKeyPairSync } from 'node:crypto';
import type { Authorization, Client } from 'acme-client';
import type { Changes } from '../src/reconcile/changes.js';
import { awaitLiveNodes } from '../src/reconcile/nodes.js';
import type { SecretBox } from '../src/secrets/secret-box.js';
import { type ClaimedOrder, findOrMakeAccount, updateAccount } from '../src/store/acme.js';
import {
  type AcmeChallenge,
  addChallenge,
  type ChallengeType,
  isAnswering,
  removeChallenge,
} from '../src/store/acme-challenges.js';
import type { Store } from '../src/store/database.js';
import type { Logger } from '../src/util/log.js';

/** Of one request to the server. */
const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** How often the server is asked whether it is done, with pauses from one to ten seconds. */
const LOOKS = 15;
const [LEAST_PAUSE_MS, LONGEST_PAUSE_MS] = [1_000, 10_000];
/** A gateway hears of a challenge at once, or with its next look. */
const GATEWAY_WAIT_MS = 45_000;

export interface AcmeOrderContext {
  readonly store: Store;
  /** With the topic `node`. */
  readonly changes: Changes;
  readonly secrets: SecretBox;
  /** The URL of the directory of the server. */
  readonly directory: string;
  /** Where it writes to. */
  readonly email: string | undefined;
  readonly challengeType: ChallengeType;
  readonly log: Logger;
}

/** PEM. */
export interface Issued {
  /** The certificate of the host, then its issuers. */
  readonly chain: string;
  readonly key: string;
}

/** @throws Error that says why it was not issued, in words of the server where it is the reason */
export async function orderCertificate(order: ClaimedOrder, context: AcmeOrderContext): Promise<Issued> {
  const acme = await loadAcme();
  const client = await openAccount(acme, context);
  const key = newKey();
  const [, csr] = await acme.crypto.createCsr({ altNames: [order.host] }, key);
  const challenges = new Map<string, AcmeChallenge>();
  const chain = await client.auto({
    csr,
    challengePriority: [context.challengeType],
    // It would ask by the name and the standard port, which need not lead here from here.
    skipChallengeVerification: true,
    challengeCreateFn: async (authorization, { type, token }, answer) => {
      if (type !== context.challengeType)
        throw new Error(`The ACME server does not offer ${context.challengeType} for ${order.host}`);
      const challenge = await challengeOf(acme, order, authorization, token, answer, context);
      challenges.set(token, challenge);
      await addChallenge(context.store, challenge);
      await answeredByGateways(challenge, context);
    },
    challengeRemoveFn: async (_authorization, { token }) => {
      const challenge = challenges.get(token);
      if (challenge) await removeChallenge(context.store, challenge);
    },
  });
  return { chain, key };
}

type Acme = typeof import('acme-client');

/** The library is loaded only where there is something to order. */
async function loadAcme(): Promise<Acme> {
  const acme = await import('acme-client');
  const { defaults } = acme.axios;
  defaults.timeout = TIMEOUT_MS;
  defaults.maxContentLength = MAX_ANSWER_BYTES;
  // They could lead to where there is no TLS.
  defaults.maxRedirects = 0;
  // What a server says to be tried later is tried by a later job.
  Object.assign(defaults, { acmeSettings: { retryMaxAttempts: 0, retryDefaultDelay: 0 } });
  return acme;
}

/** The account is made, and the terms of the server are agreed to, with the first order. */
async function openAccount(
  acme: Acme,
  { store, secrets, directory, email }: AcmeOrderContext,
): Promise<Client> {
  const account = await findOrMakeAccount(store, directory, () => secrets.seal(newKey()));
  const url = account.email === (email ?? null) ? account.url : null;
  const client = new acme.Client({
    directoryUrl: directory,
    accountKey: secrets.open(account.key_encrypted),
    ...(url !== null && { accountUrl: url }),
    ...{ backoffAttempts: LOOKS, backoffMin: LEAST_PAUSE_MS, backoffMax: LONGEST_PAUSE_MS },
  });
  if (url === null) {
    const contact = email === undefined ? [] : [`mailto:${email}`];
    await client.createAccount({ termsOfServiceAgreed: true, contact });
    await updateAccount(store, directory, { url: client.getAccountUrl(), email: email ?? null });
  }
  return client;
}

async function challengeOf(
  acme: Acme,
  { domain_id, host }: ClaimedOrder,
  authorization: Authorization,
  token: string,
  answer: string,
  { secrets, challengeType: type }: AcmeOrderContext,
): Promise<AcmeChallenge> {
  const challenge = { token, domain_id, host, type, answer, chain: null, key_encrypted: null };
  if (type === 'http-01') return challenge;
  const key = newKey();
  const [, chain] = await acme.crypto.createAlpnCertificate(authorization, answer, key);
  return { ...challenge, chain: chain.toString(), key_encrypted: secrets.seal(key) };
}

/** Resolves when all gateways answer it: the server may ask any. One that starts later reads it before it listens. */
async function answeredByGateways(
  { token }: AcmeChallenge,
  { store, changes }: AcmeOrderContext,
): Promise<void> {
  const gateways = await awaitLiveNodes(store, 'gateway');
  if (gateways.length === 0) throw new Error('No gateway is alive that could answer the ACME server');
  await Promise.all(
    gateways.map(async ({ id, hostname }) => {
      const answers = async () => (await isAnswering(store, id, token)) || undefined;
      if (!(await changes.waitFor('node', id, GATEWAY_WAIT_MS, answers)))
        throw new Error(`The gateway on ${hostname} has not taken the challenge of the ACME server`);
    }),
  );
}

/** PEM: ECDSA with P-256, which all clients know. */
function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
