/** The body of a request as a stream, for bodies that are too large to be held. */
import { finished, PassThrough, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createUnzip } from 'node:zlib';
import { AppError, toError } from '../errors.js';
import type { ApiContext } from './context.js';

/**
 * Hands the body over, unpacked if it is compressed. Whatever becomes of the stream, the request is not destroyed: it
 * still has to be answered.
 * @throws AppError unsupported_media_type for a compression we do not know, invalid_input when it cannot be unpacked;
 *   and what `read` throws
 */
export async function readUnpacked<T>(context: ApiContext, read: (body: Readable) => Promise<T>): Promise<T> {
  const { req } = context;
  const encoding = context.get('Content-Encoding').toLowerCase() || 'identity';
  const body = unpacker(encoding);
  // It may fail before anybody reads from it; who then does gets the error.
  body.on('error', () => undefined);
  req.pipe(body);
  finished(req, { writable: false }, (error) => {
    if (error) body.destroy(error);
  });
  try {
    return await read(body);
  } catch (thrown) {
    const error = toError(thrown);
    // The errors of zlib have numbers; so have those of the file system, which name their system call too.
    if (encoding === 'identity' || !('errno' in error) || 'syscall' in error) throw error;
    throw new AppError(
      'invalid_input',
      `body: cannot be unpacked as ${encoding}: ${error.message}`,
      {},
      { cause: error },
    );
  }
}

function unpacker(encoding: string): Transform {
  switch (encoding) {
    case 'identity':
      return new PassThrough();
    case 'gzip':
    case 'deflate':
      return createUnzip();
    case 'br':
      return createBrotliDecompress();
    default:
      throw new AppError(
        'unsupported_media_type',
        `The body is compressed as ${encoding}; possible are gzip, deflate and br`,
      );
  }
}
