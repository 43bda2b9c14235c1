/** A transaction of an actor: its calls run one after the other, its end comes last, and it does not stay open for ever. */
import type { ActorCall, ActorTransaction } from './actor.js';
import type { DriverAnswer, Transaction } from './driver.js';
import type { PendingCall } from './driver-call.js';
import { ServiceError } from './service-error.js';

/** Runs a call within its deadline, and counts it. */
export type RunCall = <R>(
  call: ActorCall,
  timeoutMs: number,
  work: (pending: PendingCall) => Promise<R>,
) => Promise<R>;

export interface TransactionOptions {
  readonly run: RunCall;
  /** Gives back what the transaction occupies; more than once does no harm. */
  readonly leave: () => void;
  /** It is rolled back after this. */
  readonly longestMs: number;
}

const NOTHING = Buffer.alloc(0);

/** Makes the transaction that a driver has opened one of its actor. */
export function openTransaction(
  transaction: Transaction,
  { run, leave, longestMs }: TransactionOptions,
): ActorTransaction {
  let over: 'committed' | 'rolled back' | 'timed out' | undefined;
  let underWay: PendingCall | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const timer = setTimeout(() => void end('timed out'), longestMs);

  function inTurn<R>(work: () => Promise<R>): Promise<R> {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  }

  function requireOpen(): void {
    if (over === 'timed out') {
      const message = `the transaction was rolled back: it was open for longer than ${longestMs} ms`;
      throw new ServiceError('deadline', message);
    }
    if (over) throw new ServiceError('invalid', `the transaction is ${over} already`);
  }

  async function end(reason: 'rolled back' | 'timed out'): Promise<void> {
    if (over) return;
    over = reason;
    clearTimeout(timer);
    // A statement under way would be waited for.
    underWay?.abort();
    await transaction.rollback();
    leave();
  }

  /** Runs a call that can be aborted when the transaction ends. */
  function bounded<R>(call: ActorCall, work: (pending: PendingCall) => Promise<R>): Promise<R> {
    return run(call, call.timeoutMs, (pending) => {
      underWay = pending;
      return work(pending);
    }).finally(() => {
      underWay = undefined;
    });
  }

  return {
    call: (call) =>
      inTurn(async (): Promise<DriverAnswer> => {
        requireOpen();
        return bounded(call, (pending) => transaction.call(pending));
      }),
    commit: (timeoutMs) =>
      inTurn(async () => {
        requireOpen();
        over = 'committed';
        clearTimeout(timer);
        const call: ActorCall = { operation: 'commit', args: undefined, payload: NOTHING, timeoutMs };
        await bounded(call, (pending) => transaction.commit(pending)).finally(leave);
      }),
    rollback: () => inTurn(() => end('rolled back')),
    abandon: () => end('rolled back'),
  };
}
