/**
 * Sends states of endpoints to processes of the front. What is sent together may have many policies, whose messages are
 * made one at a time, with pauses between them. All that is sent takes turns, in the order of the calls, so that no
 * state follows a newer one of the same endpoint.
 */
import pLimit from 'p-limit';
import type { FrontAnswer } from '../../contracts/front.js';
import { Pauses } from '../../util/pauses.js';
import type { FrontProcess } from './front-process.js';
import type { EndpointState, StateMessage } from './messages.js';
import { messagesOf } from './state-messages.js';

/** What is sent in one turn. */
export interface StatesToSend {
  readonly upserts: readonly EndpointState[];
  readonly removals: readonly string[];
}

type Receiver = Pick<FrontProcess, 'request'>;

export const NOTHING: StateMessage = { upserts: [], policies: {} };

export class StateSender {
  readonly #inTurn = pLimit(1);

  /**
   * @param changes what is sent, when its turn comes
   * @param receivers processes that get it, likewise
   * @param isAwaited false for processes whose answers nobody waits for, when all is written
   * @returns when the others have answered
   */
  async send<R extends Receiver>(
    changes: () => StatesToSend,
    receivers: () => readonly R[],
    isAwaited: (receiver: R) => boolean = () => true,
  ): Promise<void> {
    const answers = await this.#inTurn(() => this.#write(changes(), receivers()));
    await Promise.all(answers.flatMap(([receiver, answer]) => (isAwaited(receiver) ? answer : [])));
  }

  async #write<R extends Receiver>(
    { upserts, removals }: StatesToSend,
    receivers: readonly R[],
  ): Promise<(readonly [R, Promise<FrontAnswer | undefined>])[]> {
    const answers: (readonly [R, Promise<FrontAnswer | undefined>])[] = [];
    const write = (message: StateMessage, removed: readonly string[]) => {
      for (const receiver of receivers)
        answers.push([receiver, receiver.request({ type: 'apply', ...message, removals: removed })]);
    };
    const pauses = new Pauses();
    let unsent = removals;
    for (const message of messagesOf(upserts)) {
      write(message, unsent);
      unsent = [];
      await pauses.here();
    }
    if (unsent.length > 0) write(NOTHING, unsent);
    return answers;
  }
}
