/** Files in the bucket of the active object-storage service. */
import { AppError } from '../../errors.js';
import { defineRoute } from '../route.js';
import {
  KeyParams,
  ObjectContent,
  ObjectDeleted,
  ObjectList,
  ObjectsQuery,
  Uploaded,
  UploadForm,
} from './schema.js';

const shared = { tag: 'Objects', envelope: 'bare', errors: ['not_implemented'] } as const;

export const objectRoutes = [
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/api/minio/objects',
    summary: 'List objects',
    query: ObjectsQuery,
    data: ObjectList,
    handle: notAvailable,
  }),

  defineRoute({
    ...shared,
    method: 'POST',
    path: '/api/minio/objects',
    summary: 'Upload an object',
    form: UploadForm,
    data: Uploaded,
    handle: notAvailable,
  }),

  defineRoute({
    ...shared,
    method: 'GET',
    path: '/api/minio/objects/{key...}',
    summary: 'Download an object; its key may have slashes',
    params: KeyParams,
    data: ObjectContent,
    produces: '*/*',
    handle: notAvailable,
  }),

  defineRoute({
    ...shared,
    method: 'DELETE',
    path: '/api/minio/objects/{key...}',
    summary: 'Delete an object; its key may have slashes',
    params: KeyParams,
    data: ObjectDeleted,
    handle: notAvailable,
  }),
];

async function notAvailable(): Promise<never> {
  throw new AppError('not_implemented', 'Object files cannot be reached in this version');
}
