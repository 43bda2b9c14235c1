/** One order of a certificate from an ACME server (RFC 8555), by the library `acme-client`. */
import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Authorization, Client, Order } from 'acme-client';
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

/** Longest time of one request to the server, and most bytes of its answer. */
const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Between two questions whether the server is done: each time twice as long. */
const [LEAST_PAUSE_MS, LONGEST_PAUSE_MS] = [1_000, 10_000];
/** A gateway hears of a challenge at once, or with its next look. */
const GATEWAY_WAIT_MS = 45_000;

export interface AcmeOrderContext {
  readonly store: Store;
  /** Announcements, with the topic `node`. */
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
export interface IssuedCertificate {
  /** The certificate of the host, then its issuers. */
  readonly chain: string;
  readonly key: string;
}

/**
 * Orders the certificate of a host.
 * @param signal gives the order up: nothing goes on when this rejects with its reason
 * @throws Error that says why it was not issued, in words of the server where it is the reason
 */
export async function orderCertificate(
  order: ClaimedOrder,
  context: AcmeOrderContext,
  signal: AbortSignal,
): Promise<IssuedCertificate> {
  const acme = await loadAcme();
  const client = await openAccount(acme, context);
  const key = newKey();
  const [, csr] = await acme.crypto.createCsr({ altNames: [order.host] }, key);
  signal.throwIfAborted();
  const placed = await client.createOrder({ identifiers: [{ type: 'dns', value: order.host }] });
  // One authorization, for the one host.
  for (const authorization of await client.getAuthorizations(placed))
    if (authorization.status !== 'valid')
      await authorize({ acme, client, order, placed, authorization, context, signal });
  signal.throwIfAborted();
  await client.finalizeOrder(placed, csr);
  const issued = await settled(() => client.getOrder(placed), signal);
  if (issued.status !== 'valid') throw new Error(`The ACME server says that the order is ${issued.status}`);
  return { chain: await client.getCertificate(issued), key };
}

/** An authorization that an order needs. */
interface PendingAuthorization {
  readonly acme: Acme;
  readonly client: Client;
  readonly order: ClaimedOrder;
  readonly placed: Order;
  readonly authorization: Authorization;
  readonly context: AcmeOrderContext;
  readonly signal: AbortSignal;
}

/** Has the gateways answer a challenge of the server. @throws Error in words of the server when it is not satisfied */
async function authorize({
  acme,
  client,
  order,
  placed,
  authorization,
  context,
  signal,
}: PendingAuthorization) {
  const { store, challengeType } = context;
  const offered = authorization.challenges.find(({ type }) => type === challengeType);
  if (!offered) throw new Error(`The ACME server does not offer ${challengeType} for ${order.host}`);
  const answer = await client.getChallengeKeyAuthorization(offered);
  const challenge = await challengeOf(acme, order, authorization, offered.token, answer, context);
  await addChallenge(store, challenge);
  let isSubmitted = false;
  try {
    await answeredByGateways(challenge, context);
    signal.throwIfAborted();
    await client.completeChallenge(offered);
    isSubmitted = true;
    const look = async () =>
      (await client.getAuthorizations(placed)).find(({ url }) => url === authorization.url) ?? authorization;
    const result = await settled(look, signal);
    if (result.status !== 'valid') throw new Error(problemOf(result, challengeType));
  } catch (thrown) {
    // It would stay pending, of which servers allow few.
    if (!isSubmitted) await client.deactivateAuthorization(authorization).catch(() => undefined);
    throw thrown;
  } finally {
    await removeChallenge(store, challenge);
  }
}

function problemOf({ status, challenges }: Authorization, challengeType: ChallengeType): string {
  const error = challenges.find(({ type }) => type === challengeType)?.error ?? {};
  const said = 'detail' in error ? String(error.detail) : '';
  return said || `The ACME server says that the authorization is ${status}`;
}

/** Looks again and again until the server is done with it. @throws the reason of the signal */
async function settled<T extends Order | Authorization>(
  look: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  for (let pauseMs = LEAST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const current = await look();
    if (!['pending', 'ready', 'processing'].includes(current.status)) return current;
    await delay(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

type Acme = typeof import('acme-client');

/**
 * The library is loaded only where there is something to order. It is of the older module system: bundled, it has its
 * functions in `default` alone.
 */
async function loadAcme(): Promise<Acme> {
  const { default: acme } = await import('acme-client');
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
