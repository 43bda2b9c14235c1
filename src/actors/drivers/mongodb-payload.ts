/** The payloads of mongodb calls, which come from handlers: Extended JSON with the members of each operation. */
import { BSON, type Document } from 'mongodb';
import { toError } from '../../errors.js';
import { ServiceError } from '../service-error.js';
import { parseExtendedJson } from './mongodb-json.js';

const OBJECTS = {
  find: ['filter', 'sort', 'projection', 'skip', 'limit'],
  find_one: ['filter', 'sort', 'projection', 'skip', 'limit'],
  insert_one: ['document'],
  insert_many: ['documents'],
  update_one: ['filter', 'update', 'upsert'],
  update_many: ['filter', 'update', 'upsert'],
  replace_one: ['filter', 'replacement', 'upsert'],
  delete_one: ['filter'],
  delete_many: ['filter'],
  find_one_and_update: ['filter', 'update', 'upsert', 'return'],
  count: ['filter'],
  aggregate: ['pipeline'],
  command: ['command'],
} as const;

export type Operation = keyof typeof OBJECTS;
export const OPERATIONS = Object.keys(OBJECTS) as Operation[];

/** Commands that would change who a shared connection speaks for. */
const REFUSED_COMMANDS = new Set(['authenticate', 'logout', 'saslStart', 'saslContinue']);

/** The members of a payload, each checked when it is asked for. All methods throw ServiceError invalid. */
export class Payload {
  readonly #members: Document;

  constructor(operation: Operation, payload: Buffer) {
    this.#members = parse(payload);
    const known: readonly string[] = OBJECTS[operation];
    for (const name of Object.keys(this.#members)) {
      if (!known.includes(name)) throw invalid(name, `is not accepted; possible are ${known.join(', ')}`);
    }
  }

  document(name: string): Document {
    const value: unknown = this.#members[name];
    if (!isDocument(value)) throw invalid(name, value === undefined ? 'is required' : 'must be a document');
    return value;
  }

  optionalDocument(name: string): Document | undefined {
    return this.#isMissing(name) ? undefined : this.document(name);
  }

  documents(name: string): Document[] {
    const value: unknown = this.#members[name];
    if (!Array.isArray(value)) throw invalid(name, 'must be an array of documents');
    value.forEach((item, i) => {
      if (!isDocument(item)) throw invalid(`${name}[${i}]`, 'must be a document');
    });
    return value;
  }

  /** Changes to make, or a pipeline that makes them. */
  update(): Document | Document[] {
    return Array.isArray(this.#members['update']) ? this.documents('update') : this.document('update');
  }

  count(name: string): number {
    if (this.#isMissing(name)) return 0;
    const value: unknown = this.#members[name];
    const number = value instanceof BSON.Int32 || value instanceof BSON.Long ? Number(value) : -1;
    if (!Number.isSafeInteger(number) || number < 0) throw invalid(name, 'must be an integer of at least 0');
    return number;
  }

  flag(name: string): boolean {
    if (this.#isMissing(name)) return false;
    const value: unknown = this.#members[name];
    if (typeof value !== 'boolean') throw invalid(name, 'must be true or false');
    return value;
  }

  /** Which state of a changed document is wanted. */
  returned(): 'before' | 'after' {
    const value: unknown = this.#isMissing('return') ? 'before' : this.#members['return'];
    if (value !== 'before' && value !== 'after') throw invalid('return', 'must be "before" or "after"');
    return value;
  }

  command(): Document {
    const command = this.document('command');
    const [name] = Object.keys(command);
    if (name === undefined) throw invalid('command', 'must not be empty');
    if (REFUSED_COMMANDS.has(name)) {
      throw invalid('command', `${name} is refused: the user is the one in the config of the service`);
    }
    return command;
  }

  #isMissing(name: string): boolean {
    return this.#members[name] === undefined || this.#members[name] === null;
  }
}

/** @throws ServiceError invalid */
export function readCollection(args: unknown): string {
  const collection = (args as { readonly collection?: unknown } | null | undefined)?.collection;
  if (typeof collection === 'string' && collection !== '') return collection;
  throw new ServiceError('invalid', 'args.collection: must be the name of a collection');
}

function parse(payload: Buffer): Document {
  if (payload.length === 0) return {};
  let value: unknown;
  try {
    value = parseExtendedJson(payload.toString());
  } catch (cause) {
    throw new ServiceError('invalid', `payload: must be Extended JSON: ${toError(cause).message}`, { cause });
  }
  if (!isDocument(value)) throw new ServiceError('invalid', 'payload: must be an object');
  return value;
}

/** Not one of the values that Extended JSON writes as objects too. */
function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function invalid(member: string, problem: string): ServiceError {
  return new ServiceError('invalid', `payload.${member}: ${problem}`);
}
