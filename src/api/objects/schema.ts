/** Object files as the contract shows them. */
import { Type } from '@sinclair/typebox';
import { Timestamp } from '../schemas.js';

const Key = Type.String({ format: 'text', minLength: 1, maxLength: 1024, description: 'Object key' });

export const ObjectsQuery = Type.Object({ prefix: Type.Optional(Type.String({ format: 'text' })) });

export const ObjectList = Type.Object(
  {
    bucket: Type.String(),
    prefix: Type.String(),
    objects: Type.Array(Type.Object({ key: Key, size: Type.Integer(), last_modified: Timestamp })),
  },
  { title: 'ObjectList' },
);

export const UploadForm = Type.Object({
  file: Type.Unsafe<Buffer>({ type: 'string', format: 'binary' }),
  key: Key,
});

export const Uploaded = Type.Object(
  { key: Key, bucket: Type.String(), size: Type.Integer(), message: Type.String() },
  { title: 'ObjectUploaded' },
);

export const KeyParams = Type.Object({ key: Key });

export const ObjectContent = Type.Unsafe<Buffer>({ type: 'string', format: 'binary' });

export const ObjectDeleted = Type.Object(
  { key: Key, bucket: Type.String(), deleted: Type.Boolean() },
  { title: 'ObjectDeleted' },
);
