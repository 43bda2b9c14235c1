/** Reads request bodies as streams, for bodies that are too large for memory. */
import { finished, PassThrough, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createUnzip } from 'node:zlib';
import type { ParameterizedContext } from 'koa';
import { AppError, toError } from '../../errors.js';

/**
 * Calls `read` with the decompressed body. The request is not destroyed if the stream fails, because it still has to be
 * answered.
 * @throws AppError unsupported_media_type for an unknown Content-Encoding, invalid_input when decompression fails; and
 *   the errors of `read`
 */
export async function readDecompressed<T>(
  context: ParameterizedContext,
  read: (body: Readable) => Promise<T>,
): Promise<T> {
  const { req } = context;
  const encoding = context.get('Content-Encoding').toLowerCase() || 'identity';
  const body = decompressor(encoding);
  // The stream may fail before it is read; a later reader gets the error.
  body.on('error', () => undefined);
  req.pipe(body);
  finished(req, { writable: false }, (error) => {
    if (error) body.destroy(error);
  });
  try {
    return await read(body);
  } catch (thrown) {
    const error = toError(thrown);
    // Errors of zlib have an errno; so do those of the file system, which also have a syscall.
    if (encoding === 'identity' || !('errno' in error) || 'syscall' in error) throw error;
    throw new AppError(
      'invalid_input',
      `body: cannot be decompressed as ${encoding}: ${error.message}`,
      {},
      { cause: error },
    );
  }
}

function decompressor(encoding: string): Transform {
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
        `The body is compressed as ${encoding}; supported are gzip, deflate and br`,
      );
  }
}
