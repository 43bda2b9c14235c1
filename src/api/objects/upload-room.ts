/** Room on the disk of this process for files that are uploaded to object storages. */
import type { Config } from '../../config.js';
import { SpoolRoom } from '../../util/spool-room.js';

/** Files have their place until the object storage has them. */
export function uploadRoom(
  config: Pick<Config, 'UPLOADS_OF_USER_LIMIT' | 'UPLOADS_SPOOLED_LIMIT_BYTES'>,
): SpoolRoom {
  return new SpoolRoom({
    title: 'uploads that have not been stored yet',
    bodies: config.UPLOADS_OF_USER_LIMIT,
    bodiesSetting: 'UPLOADS_OF_USER_LIMIT',
    bytes: config.UPLOADS_SPOOLED_LIMIT_BYTES,
    bytesSetting: 'UPLOADS_SPOOLED_LIMIT_BYTES',
    code: 'too_many_uploads',
  });
}
