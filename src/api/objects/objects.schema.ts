/** Schemas of objects in object storages. */
import { Type } from '@sinclair/typebox';
import { FilePart } from '../request/form.js';
import { Id, Timestamp } from '../route/schemas.js';

const Key = Type.String({ format: 'text', minLength: 1, maxLength: 1024, description: 'Object key' });

const service = Type.Optional({
  ...Id,
  description: 'An active object-storage service; the one that has been active longest unless given',
});

export const ServiceQuery = Type.Object({ service });

export const ObjectsQuery = Type.Object({
  prefix: Type.Optional(Type.String({ format: 'text', maxLength: 1024 })),
  service,
});

export const ObjectList = Type.Object(
  {
    bucket: Type.String(),
    prefix: Type.String(),
    objects: Type.Array(Type.Object({ key: Key, size: Type.Integer(), last_modified: Timestamp })),
  },
  { title: 'ObjectList' },
);

export const UploadForm = Type.Object({ file: FilePart, key: Key });

export const Uploaded = Type.Object(
  { key: Key, bucket: Type.String(), size: Type.Integer(), message: Type.String() },
  { title: 'ObjectUploaded' },
);

export const KeyParams = Type.Object({ key: Key });

export const ObjectContent = Type.Unsafe<Buffer>({ type: 'string', format: 'binary' });

/** Responses to range and conditional requests. */
export const CONDITIONAL_RESPONSES = {
  206: { description: 'The requested range', data: ObjectContent, produces: '*/*' },
  304: { description: 'The object has not changed', data: ObjectContent, produces: '*/*' },
  416: { description: 'The range is not satisfiable', data: ObjectContent, produces: '*/*' },
} as const;

export const ObjectDeleted = Type.Object(
  { key: Key, bucket: Type.String(), deleted: Type.Boolean() },
  { title: 'ObjectDeleted' },
);
