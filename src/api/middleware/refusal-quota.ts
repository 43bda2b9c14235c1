/**
 * How many refusals of a minute the audit keeps: so many of each address and each principal, and of all strangers, so
 * that nobody fills the disk or uses up what is kept of others. Sign-ins have counts of their own: whatever else a
 * stranger sends, an attack on passwords is in the audit.
 */

import type { ErrorCode } from '../../errors.js';
import { networkOf } from '../../util/client-network.js';
import type { Logger } from '../../util/log.js';
import { actorOf } from '../access/principal.js';
import type { ApiContext } from '../route/context.js';

/** Refusals that are kept of a minute: of one address; of one user or token; of all strangers. */
const KEPT = { address: 60, principal: 300, strangers: 600 };

/** Why a sign-in fails. Each attempt is one of few, and none can be made to look like something else. */
const SIGN_INS: ReadonlySet<ErrorCode> = new Set([
  'login_failed',
  'too_many_logins',
  'oidc_failed',
  'oidc_no_role',
]);

export class RefusalQuota {
  readonly #log: Logger;
  #minute = 0;
  #dropped = 0;
  readonly #counts = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Counts a refusal, and whether the audit keeps it. */
  keeps(context: ApiContext, code: ErrorCode): boolean {
    this.#beginMinute();
    const isKept = this.#limitsOf(context, code).every(([key, limit]) => {
      const count = (this.#counts.get(key) ?? 0) + 1;
      if (count > limit) return false;
      this.#counts.set(key, count);
      return true;
    });
    if (!isKept) this.#dropped++;
    return isKept;
  }

  #limitsOf(context: ApiContext, code: ErrorCode): readonly (readonly [key: string, limit: number])[] {
    const { principal } = context.state;
    const actor = actorOf(context);
    if (principal) return [[JSON.stringify(actor), KEPT.principal]];
    const what = SIGN_INS.has(code) ? 'sign-in' : 'other';
    const from = actor.kind === 'anonymous' ? networkOf(actor.address) : '';
    // One address over its limit takes nothing from the rest.
    return [
      [`${what} ${from}`, KEPT.address],
      [what, KEPT.strangers],
    ];
  }

  #beginMinute(): void {
    const minute = Math.floor(Date.now() / 60_000);
    if (minute === this.#minute) return;
    if (this.#dropped > 0)
      this.#log.warn({ refusals: this.#dropped }, 'more was refused than the audit keeps of a minute');
    this.#minute = minute;
    this.#dropped = 0;
    this.#counts.clear();
  }
}
