/** Encrypts all values again with the present key, while the previous one is still accepted. */
import { type SecretBox, SecretKeyError, sealedPrefix } from '../src/secrets/secret-box.js';
import type { Store } from '../src/store/database.js';
import { liveNodes } from '../src/store/nodes.js';
import {
  countSealedOtherwise,
  replaceSealed,
  SEALED_COLUMNS,
  type SealedColumn,
  sealedOtherwise,
} from '../src/store/sealed-values.js';
import type { Logger } from '../src/util/log.js';

/** Values of one statement; each may have 100 KiB. */
const BATCH = 100;

export class Reseal {
  readonly #store: Store;
  readonly #secrets: SecretBox;
  readonly #log: Logger;
  readonly #batch: number;
  /** What was logged last, so that it is not repeated. */
  #said = '';

  constructor(store: Store, secrets: SecretBox, log: Logger, batch = BATCH) {
    this.#store = store;
    this.#secrets = secrets;
    this.#log = log;
    this.#batch = batch;
  }

  /** One run over all values that the present key has not sealed. Any number of workers may run it, at any time. */
  async run(): Promise<void> {
    const waitingFor = await this.#nodesWithoutKey();
    if (waitingFor.length > 0) {
      const message = 'values are encrypted with SECRET_KEY when all processes have it, which these do not';
      return this.#say('warn', { processes: waitingFor }, message);
    }
    const left = await countSealedOtherwise(this.#store, this.#prefix);
    if (left > 0) this.#log.info({ left }, 'values are encrypted again with SECRET_KEY');
    let unreadable = 0;
    for (const column of SEALED_COLUMNS) unreadable += await this.#runColumn(column);
    const still = await countSealedOtherwise(this.#store, this.#prefix);
    if (unreadable > 0) {
      const message = 'values are left that neither SECRET_KEY nor SECRET_KEY_PREVIOUS opens; set them again';
      return this.#say('warn', { unreadable }, message);
    }
    if (still > 0) return; // Written meanwhile by processes that have not been restarted yet: for the next run.
    this.#say(
      'info',
      {},
      'nothing is encrypted with another key than SECRET_KEY; SECRET_KEY_PREVIOUS can be removed',
    );
  }

  get #prefix(): string {
    return sealedPrefix(this.#secrets.keyIds[0]);
  }

  /** The live processes that could not decrypt what the present key seals. */
  async #nodesWithoutKey(): Promise<string[]> {
    const kinds = ['gateway', 'actor-host'] as const;
    const nodes = (await Promise.all(kinds.map((kind) => liveNodes(this.#store, kind)))).flat();
    const [current] = this.#secrets.keyIds;
    const has = (keys: unknown) => Array.isArray(keys) && keys.includes(current);
    return nodes
      .filter(({ info }) => !has(info['keys']))
      .map(({ kind, hostname, pid }) => `${kind} ${pid} of ${hostname}`);
  }

  /** @returns how many values cannot be opened */
  async #runColumn(column: SealedColumn): Promise<number> {
    let [done, unreadable, last] = [0, 0, ''];
    for (;;) {
      const values = await sealedOtherwise(this.#store, column, this.#prefix, last, this.#batch);
      const opened = values.map((before) => ({ before, text: this.#open(before) }));
      const resealed = opened.flatMap(({ before, text }) =>
        text === undefined ? [] : [{ before, after: this.#secrets.seal(text) }],
      );
      if (resealed.length > 0) done += await replaceSealed(this.#store, column, resealed);
      unreadable += values.length - resealed.length;
      last = values.at(-1) ?? last;
      if (values.length > 0)
        this.#log.info({ table: column.table, done, unreadable }, 'values encrypted again');
      if (values.length < this.#batch) return unreadable;
    }
  }

  #open(sealed: string): string | undefined {
    try {
      return this.#secrets.open(sealed);
    } catch (thrown) {
      if (thrown instanceof SecretKeyError) return undefined;
      throw thrown;
    }
  }

  #say(level: 'info' | 'warn', facts: object, message: string): void {
    const said = JSON.stringify([facts, message]);
    if (said !== this.#said) this.#log[level](facts, message);
    this.#said = said;
  }
}
