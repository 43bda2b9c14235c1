/** Writes of what must be unique: when something else has it already, the error says what. */
import { AppError, type ErrorFacts } from '../errors.js';
import { isBrokenTransaction, violatedConstraint } from './database.js';

export interface UniqueWrite<Owner> {
  /** The name of the constraint. */
  readonly constraint: string;
  /** Looks for what has it; by now it may be gone. */
  owner(): Promise<Owner | undefined>;
  error(owner: Owner | undefined): ErrorFacts;
}

/** Runs a write. @throws AppError that names what has the value */
export async function namingOwner<T, Owner>(
  { constraint, owner, error }: UniqueWrite<Owner>,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (thrown) {
    if (violatedConstraint(thrown) !== constraint) throw thrown;
    const { code, message, details } = error(await ownerIfKnown(owner));
    throw new AppError(code, message, details ? { details } : {}, { cause: thrown });
  }
}

/** Nothing can be looked up in a transaction that the write is a part of, and has broken. */
async function ownerIfKnown<Owner>(owner: () => Promise<Owner | undefined>): Promise<Owner | undefined> {
  try {
    return await owner();
  } catch (thrown) {
    if (isBrokenTransaction(thrown)) return undefined;
    throw thrown;
  }
}
