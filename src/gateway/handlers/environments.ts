/**
 * The variables of handlers, with their secrets decrypted for each start. What was read last is kept, encrypted as it
 * is stored: handlers are restarted also while PostgreSQL is away.
 */
import { toError } from '../../errors.js';
import type { Store } from '../../store/database.js';
import { type SealableValue, type VariableInForce, variablesInForce } from '../../store/variables.js';
import { isErrno } from '../../util/errno.js';
import { HandlerStartError } from './handler-process.js';

/**
 * What a process gets at most, bytes: the kernel gives it 2 MiB for its arguments and environment. Changes of variables
 * keep to less than this; endpoints that move to another collection or domain can have more.
 */
const MAX_BYTES = 1024 * 1024;

interface CachedEnvironment {
  readonly digest: string;
  readonly variables: readonly VariableInForce[];
}

export class Environments {
  readonly #store: Store;
  readonly #decrypt: (encrypted: string) => string;
  readonly #known = new Map<string, CachedEnvironment>();

  /** @param decrypt throws when something was encrypted with another key */
  constructor(store: Store, decrypt: (encrypted: string) => string) {
    this.#store = store;
    this.#decrypt = decrypt;
  }

  /**
   * The variables of an endpoint by name.
   * @param digest of those in force; null when there are none
   * @throws HandlerStartError when they are too large, or a secret was encrypted with another key
   * @throws Error when they cannot be read
   */
  async of(endpointId: string, digest: string | null): Promise<Readonly<Record<string, string>>> {
    const variables = await this.#inForce(endpointId, digest);
    const values = variables.map((variable) => [variable.name, this.valueOf(variable)] as const);
    const bytes = values.reduce((sum, pair) => sum + Buffer.byteLength(pair.join('=')), 0);
    if (bytes > MAX_BYTES) throw tooLarge(`: ${bytes} bytes with their names, at most ${MAX_BYTES}`);
    return Object.fromEntries(values);
  }

  /**
   * The values that policies name.
   * @returns a function that has the value of a secret; null for a plain variable, undefined when nothing is set
   * @throws Error when they cannot be read
   */
  async secretsOf(
    endpointId: string,
    digest: string | null,
  ): Promise<(name: string) => string | null | undefined> {
    const variables = await this.#inForce(endpointId, digest);
    return (name) => {
      const variable = variables.find((one) => one.name === name);
      return variable && (variable.value_encrypted === null ? null : this.valueOf(variable));
    };
  }

  async #inForce(endpointId: string, digest: string | null): Promise<readonly VariableInForce[]> {
    if (digest === null) {
      this.forget(endpointId);
      return [];
    }
    let known = this.#known.get(endpointId);
    if (known?.digest !== digest) {
      known = { digest, variables: await variablesInForce(this.#store, endpointId) };
      this.#known.set(endpointId, known);
    }
    return known.variables;
  }

  forget(endpointId: string): void {
    this.#known.delete(endpointId);
  }

  /** @throws HandlerStartError when it was encrypted with another key */
  valueOf({ name, value, value_encrypted }: SealableValue & { readonly name: string }): string {
    if (value_encrypted === null) return value ?? '';
    try {
      return this.#decrypt(value_encrypted);
    } catch (thrown) {
      const error = toError(thrown);
      throw new HandlerStartError(`The secret ${name} cannot be decrypted. ${error.message}`, {
        cause: error,
      });
    }
  }
}

/** Tells what to do when the kernel refuses a process because of its environment. */
export function explainStart(error: unknown): unknown {
  return isErrno(error, 'E2BIG')
    ? tooLarge(' on this machine, whose limit of the stack is low', error)
    : error;
}

function tooLarge(how: string, cause?: unknown): HandlerStartError {
  const advice = 'delete some of the endpoint, its collection or its domain';
  return new HandlerStartError(
    `The variables and secrets in force are too large for a process${how}; ${advice}.`,
    { cause },
  );
}
