/** The operations of the mongodb driver. Each answers with Extended JSON. */
import type { Db, Document, UpdateResult } from 'mongodb';
import { requireSendable } from '../answer-size.js';
import type { DriverCall } from '../driver.js';
import { encodeExtendedJson } from './mongodb-json.js';
import { type Operation, Payload, readCollection } from './mongodb-payload.js';

/** What ends an operation together with its call. The types of the library know the signal only for reads; writes take it too. */
interface Bounds {
  /** Ends it here: what waits for a connection is not sent, and the connection of what was sent is closed. */
  readonly signal: AbortSignal;
  /** Ends it on the server. */
  readonly maxTimeMS: number;
}

function boundsOf({ signal, remainingMs }: DriverCall): Bounds {
  return { signal, maxTimeMS: Math.ceil(remainingMs) };
}

/** The library sends commands as they are. getMore is the only one that takes no time limit; that of its cursor holds. */
function boundedCommand(command: Document, { maxTimeMS }: Bounds): Document {
  return 'maxTimeMS' in command || 'getMore' in command ? command : { ...command, maxTimeMS };
}

/**
 * Runs an operation.
 * @throws ServiceError invalid, or whatever the library throws
 */
export async function runOperation(db: Db, operation: Operation, call: DriverCall): Promise<string> {
  const payload = new Payload(operation, call.payload);
  const bounds = boundsOf(call);
  if (operation === 'command') {
    return encodeExtendedJson(await db.command(boundedCommand(payload.command(), bounds), bounds));
  }
  const collection = db.collection(readCollection(call.args));
  switch (operation) {
    case 'find':
      return encodeCursor(
        collection.find(payload.optionalDocument('filter') ?? {}, findOptions(payload, bounds)),
      );
    case 'find_one': {
      const { limit: _limit, ...options } = findOptions(payload, bounds);
      return encodeExtendedJson(await collection.findOne(payload.optionalDocument('filter') ?? {}, options));
    }
    case 'insert_one': {
      const { insertedId } = await collection.insertOne(payload.document('document'), bounds);
      return encodeExtendedJson({ inserted_id: insertedId });
    }
    case 'insert_many': {
      const documents = payload.documents('documents');
      const { insertedIds } = await collection.insertMany(documents, bounds);
      return encodeExtendedJson({ inserted_ids: documents.map((_document, i) => insertedIds[i]) });
    }
    case 'update_one':
      return updated(
        await collection.updateOne(payload.document('filter'), payload.update(), {
          ...bounds,
          upsert: payload.flag('upsert'),
        }),
      );
    case 'update_many':
      return updated(
        await collection.updateMany(payload.document('filter'), payload.update(), {
          ...bounds,
          upsert: payload.flag('upsert'),
        }),
      );
    case 'replace_one':
      return updated(
        await collection.replaceOne(payload.document('filter'), payload.document('replacement'), {
          ...bounds,
          upsert: payload.flag('upsert'),
        }),
      );
    case 'delete_one': {
      const { deletedCount } = await collection.deleteOne(payload.document('filter'), bounds);
      return encodeExtendedJson({ deleted: deletedCount });
    }
    case 'delete_many': {
      const { deletedCount } = await collection.deleteMany(payload.document('filter'), bounds);
      return encodeExtendedJson({ deleted: deletedCount });
    }
    case 'find_one_and_update':
      return encodeExtendedJson(
        await collection.findOneAndUpdate(payload.document('filter'), payload.update(), {
          ...bounds,
          upsert: payload.flag('upsert'),
          returnDocument: payload.returned(),
        }),
      );
    case 'count':
      return encodeExtendedJson(
        await collection.countDocuments(payload.optionalDocument('filter') ?? {}, bounds),
      );
    case 'aggregate':
      return encodeCursor(collection.aggregate(payload.documents('pipeline'), bounds));
  }
}

function findOptions(payload: Payload, bounds: Bounds) {
  const sort = payload.optionalDocument('sort');
  const projection = payload.optionalDocument('projection');
  return {
    ...(sort && { sort }),
    ...(projection && { projection }),
    skip: payload.count('skip'),
    limit: payload.count('limit'),
    ...bounds,
  };
}

/** Reads documents only as long as the answer can be sent. */
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
