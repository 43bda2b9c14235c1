/**
 * The operations of the mongodb driver. Payloads are Extended JSON with the members of each operation; answers are
 * Extended JSON.
 */
import { BSON, type Db, type Document, type UpdateResult } from 'mongodb';
import { type DriverCall, signalOf } from '../../driver-call.js';
import { payloadReader, requireSendable } from '../../operations.js';
import { type Static, type TObject, type TProperties, Type } from '../../schema.js';
import { encodeExtendedJson, parseExtendedJson } from './extended-json.js';

/**
 * Options that bound an operation by its call. Writes accept the signal too, although the types of the library do not.
 */
interface Bounds {
  /** Aborts on the client: a waiting operation is not sent, and the connection of a sent one is closed. */
  readonly signal: AbortSignal;
  /** Time limit on the server. */
  readonly maxTimeMS: number;
}

/** An operation that returns Extended JSON. */
export interface MongodbOperation {
  readonly args: TObject;
  /** @throws ServiceError `invalid`, or errors of the library */
  perform(db: Db, args: { readonly collection: string }, call: DriverCall): Promise<string>;
}

type Collection = ReturnType<Db['collection']>;

/** Commands that would change the user of a shared connection. */
const REFUSED_COMMANDS = new Set(['authenticate', 'logout', 'saslStart', 'saslContinue']);

const CollectionArgs = Type.Object({ collection: Type.String({ minLength: 1 }) });

/** Whether a value is a document, and not another BSON type that Extended JSON writes as an object. */
function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function documentWith(problemOf: (document: Document) => string | undefined = () => undefined) {
  return Type.Unsafe<Document>({
    type: 'object',
    refine: (value: object) => (isDocument(value) ? problemOf(value) : 'must be a document'),
  });
}

const Doc = documentWith();
const Documents = Type.Array(Doc);
/** An update document or an aggregation pipeline. */
const Update = Type.Unsafe<Document | Document[]>({
  type: ['object', 'array'],
  refine: Doc['refine'],
  items: Doc,
});
const Count = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));
const Upsert = Type.Boolean({ default: false });
const Filter = Type.Unsafe<Document>({ ...Doc, default: {} });
const FIND = {
  filter: Filter,
  sort: Type.Optional(Doc),
  projection: Type.Optional(Doc),
  skip: Count,
  limit: Count,
};
const UPDATE = { filter: Doc, update: Update, upsert: Upsert };

export const OPERATIONS = {
  find: operation(FIND, (collection, { filter, ...options }, bounds) =>
    encodeCursor(collection.find(filter, { ...options, ...bounds })),
  ),
  find_one: operation(FIND, async (collection, { filter, limit: _limit, ...options }, bounds) =>
    encodeExtendedJson(await collection.findOne(filter, { ...options, ...bounds })),
  ),
  insert_one: operation({ document: Doc }, async (collection, { document }, bounds) => {
    const { insertedId } = await collection.insertOne(document, bounds);
    return encodeExtendedJson({ inserted_id: insertedId });
  }),
  insert_many: operation({ documents: Documents }, async (collection, { documents }, bounds) => {
    const { insertedIds } = await collection.insertMany(documents, bounds);
    return encodeExtendedJson({ inserted_ids: documents.map((_document, i) => insertedIds[i]) });
  }),
  update_one: operation(UPDATE, async (collection, { filter, update, upsert }, bounds) =>
    updated(await collection.updateOne(filter, update, { ...bounds, upsert })),
  ),
  update_many: operation(UPDATE, async (collection, { filter, update, upsert }, bounds) =>
    updated(await collection.updateMany(filter, update, { ...bounds, upsert })),
  ),
  replace_one: operation(
    { filter: Doc, replacement: Doc, upsert: Upsert },
    async (collection, { filter, replacement, upsert }, bounds) =>
      updated(await collection.replaceOne(filter, replacement, { ...bounds, upsert })),
  ),
  delete_one: operation({ filter: Doc }, async (collection, { filter }, bounds) => {
    const { deletedCount } = await collection.deleteOne(filter, bounds);
    return encodeExtendedJson({ deleted: deletedCount });
  }),
  delete_many: operation({ filter: Doc }, async (collection, { filter }, bounds) => {
    const { deletedCount } = await collection.deleteMany(filter, bounds);
    return encodeExtendedJson({ deleted: deletedCount });
  }),
  find_one_and_update: operation(
    {
      ...UPDATE,
      return: Type.Unsafe<'before' | 'after'>({ enum: ['before', 'after'], default: 'before' }),
    },
    async (collection, { filter, update, upsert, return: returnDocument }, bounds) => {
      const options = { ...bounds, upsert, returnDocument };
      return encodeExtendedJson(await collection.findOneAndUpdate(filter, update, options));
    },
  ),
  count: operation({ filter: Filter }, async (collection, { filter }, bounds) =>
    encodeExtendedJson(await collection.countDocuments(filter, bounds)),
  ),
  aggregate: operation({ pipeline: Documents }, (collection, { pipeline }, bounds) =>
    encodeCursor(collection.aggregate(pipeline, bounds)),
  ),
  command: commandOperation(),
} as const satisfies Record<string, MongodbOperation>;

function operation<P extends TProperties>(
  properties: P,
  perform: (collection: Collection, members: Static<TObject<P>>, bounds: Bounds) => Promise<string>,
): MongodbOperation {
  const read = payloadOf(properties);
  return {
    args: CollectionArgs,
    perform: (db, args, call) => perform(db.collection(args.collection), read(call.payload), boundsOf(call)),
  };
}

function commandOperation(): MongodbOperation {
  const read = payloadOf({
    command: documentWith((command) => {
      const [name] = Object.keys(command);
      if (name === undefined) return 'must not be empty';
      return REFUSED_COMMANDS.has(name)
        ? `${name} is refused: the user is the one in the config of the service`
        : undefined;
    }),
  });
  return {
    args: Type.Object({}),
    perform: async (db, _args, call) => {
      const { command } = read(call.payload);
      const bounds = boundsOf(call);
      // The library adds no options to commands. getMore takes no time limit; that of its cursor applies.
      const isBounded = 'maxTimeMS' in command || 'getMore' in command;
      const bounded = isBounded ? command : { ...command, maxTimeMS: bounds.maxTimeMS };
      return encodeExtendedJson(await db.command(bounded, bounds));
    },
  };
}

function payloadOf<P extends TProperties>(properties: P) {
  const schema = Type.Object(properties, { additionalProperties: false });
  return payloadReader(schema, parseMembers, 'Extended JSON');
}

/** Removes members that are null, and turns numbers outside of documents into plain ones. */
function parseMembers(text: string): unknown {
  const value = text === '' ? {} : parseExtendedJson(text);
  if (!isDocument(value)) return Array.isArray(value) ? value : String(value);
  const entries = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(
    entries.map(([name, member]) => [
      name,
      member instanceof BSON.Int32 || member instanceof BSON.Long ? Number(member) : member,
    ]),
  );
}

function boundsOf(call: DriverCall): Bounds {
  return { signal: signalOf(call), maxTimeMS: Math.ceil(call.remainingMs) };
}

/** Reads documents until the answer becomes too large. */
async function encodeCursor(cursor: AsyncIterable<Document>): Promise<string> {
  const documents: string[] = [];
  let bytes = 2;
  // Leaving the loop closes the cursor.
  for await (const document of cursor) {
    const text = encodeExtendedJson(document);
    bytes += Buffer.byteLength(text) + 1;
    requireSendable(bytes);
    documents.push(text);
  }
  return `[${documents.join(',')}]`;
}

function updated({ matchedCount, modifiedCount, upsertedId }: UpdateResult): string {
  return encodeExtendedJson({ matched: matchedCount, modified: modifiedCount, upserted_id: upsertedId });
}
