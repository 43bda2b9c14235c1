/**
 * The challenges of ACME servers that a gateway answers: read when they change, and now and then. What it answers is in
 * the row of its node, which those wait for who have the servers ask (`jobs/acme-order.ts`).
 */
import { isDeepStrictEqual } from 'node:util';
import type { Changes } from '../../reconcile/changes.js';
import type { NodeRegistration } from '../../reconcile/nodes.js';
import { Rereading } from '../../reconcile/rereading.js';
import { type AcmeChallenge, pendingChallenges } from '../../store/acme-challenges.js';
import type { Store } from '../../store/database.js';
import type { Logger } from '../../util/log.js';
import type { Front } from './front.js';
import type { FrontChallenges } from './messages.js';

interface ChallengesOptions {
  readonly store: Store;
  readonly changes: Changes;
  /** Throws when something was encrypted with another key. */
  readonly decrypt: (encrypted: string) => string;
  readonly front: Pick<Front, 'setChallenges'>;
  readonly node: Pick<NodeRegistration, 'id' | 'update'>;
  /** What the node tells of itself besides. */
  readonly info: Readonly<Record<string, unknown>>;
  readonly log: Logger;
}

export class Challenges {
  readonly #options: ChallengesOptions;
  #reading: Rereading | undefined;
  #known: readonly AcmeChallenge[] = [];

  constructor(options: ChallengesOptions) {
    this.#options = options;
  }

  /** Tells the front of those that are pending, from now on. @throws Error when they cannot be read at first */
  async start(): Promise<void> {
    const { changes, log } = this.#options;
    this.#reading = await Rereading.start({
      changes,
      topic: 'acme_challenge',
      read: () => this.#read(),
      onError: (error) => log.warn({ err: error }, 'challenges of ACME servers could not be read'),
    });
  }

  async stop(): Promise<void> {
    await this.#reading?.stop();
  }

  async #read(): Promise<void> {
    const { store, front, node, info } = this.#options;
    const pending = await pendingChallenges(store);
    if (isDeepStrictEqual(pending, this.#known)) return;
    await front.setChallenges(this.#opened(pending));
    await node.update({ ...info, challenges: pending.map(({ token }) => token) });
    store.announce('node', node.id);
    this.#known = pending;
  }

  #opened(challenges: readonly AcmeChallenge[]): FrontChallenges {
    const { decrypt, log } = this.#options;
    return {
      http: challenges.flatMap(({ type, host, token, answer }) =>
        type === 'http-01' ? [{ host, token, answer }] : [],
      ),
      tls: challenges.flatMap(({ type, host, chain, key_encrypted }) => {
        if (type !== 'tls-alpn-01' || chain === null || key_encrypted === null) return [];
        try {
          return [{ host, chain, key: decrypt(key_encrypted) }];
        } catch (error) {
          log.warn({ err: error, host }, 'the key of a challenge cannot be decrypted; it is not answered');
          return [];
        }
      }),
    };
  }
}
