/**
 * The variables of handlers, with their secrets decrypted for each start. What was read last is kept, encrypted as it
 * is stored: handlers are restarted also while PostgreSQL is away.
 */
import { toError } from '../errors.js';
import type { Store } from '../store/database.js';
import { type VariableInForce, variablesInForce } from '../store/variables.js';

interface Known {
  readonly digest: string;
  readonly variables: readonly VariableInForce[];
}

export class Environments {
  readonly #store: Store;
  readonly #decrypt: (encrypted: string) => string;
  readonly #known = new Map<string, Known>();

  /** @param decrypt throws when something was encrypted with another key */
  constructor(store: Store, decrypt: (encrypted: string) => string) {
    this.#store = store;
    this.#decrypt = decrypt;
  }

  /**
   * The variables of an endpoint by name.
   * @param digest of those in force; null when there are none
   * @throws Error when they cannot be read, or a secret was encrypted with another key
   */
  async of(endpointId: string, digest: string | null): Promise<Readonly<Record<string, string>>> {
    if (digest === null) {
      this.forget(endpointId);
      return {};
    }
    let known = this.#known.get(endpointId);
    if (known?.digest !== digest) {
      known = { digest, variables: await variablesInForce(this.#store, endpointId) };
      this.#known.set(endpointId, known);
    }
    return Object.fromEntries(known.variables.map((variable) => [variable.name, this.#valueOf(variable)]));
  }

  forget(endpointId: string): void {
    this.#known.delete(endpointId);
  }

  #valueOf({ name, value, value_encrypted }: VariableInForce): string {
    if (value_encrypted === null) return value ?? '';
    try {
      return this.#decrypt(value_encrypted);
    } catch (thrown) {
      const error = toError(thrown);
      throw new Error(`The secret ${name} cannot be decrypted. ${error.message}`, { cause: error });
    }
  }
}
