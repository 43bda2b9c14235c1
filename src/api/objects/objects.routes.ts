/** Objects in the bucket of an active object-storage service. Their content is streamed, not held in memory. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import mime from 'mime-types';
import { AppError, requireFound } from '../../errors.js';
import { objectKeyProblem } from '../../model/object-key.js';
import { ownerOfActor } from '../../model/owner.js';
import type { Scope } from '../../model/permission.js';
import type { Database } from '../../store/database.js';
import { activeStorage, findService } from '../../store/services.js';
import { AnswerTurns } from '../response/answer-turns.js';
import { Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import {
  CONDITIONAL_RESPONSES,
  KeyParams,
  ObjectContent,
  ObjectDeleted,
  ObjectList,
  ObjectsQuery,
  ServiceQuery,
  Uploaded,
  UploadForm,
} from './objects.schema.js';

/** A storage has 32 connections, of which handlers keep some. */
const transfers = new AnswerTurns({ what: 'transfers of object storages', places: 16, beyond: 8 });

/** Size of the reads of an uploaded file. */
const CHUNK_BYTES = 256 * 1024;

const shared = {
  tag: 'Objects',
  envelope: 'bare',
  errors: ['not_found', 'no_actor_host', 'no_object_storage', 'backend_failed', 'busy'],
} as const;

/** Uploaded files are untrusted: browsers must not execute them as pages of this origin. */
const UNTRUSTED_CONTENT_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "sandbox; frame-ancestors 'none'",
} as const;

/** Request headers that are forwarded to the object storage. */
const FORWARDED_HEADERS = ['range', 'if-range', 'if-none-match'] as const;

export const objectRoutes = [
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/api/minio/objects',
    permission: 'objects:read',
    summary: 'List objects',
    query: ObjectsQuery,
    data: ObjectList,
    handle: async (
      { query: { prefix = '', service: serviceId }, principal, scope },
      { store, actorHosts },
    ) => {
      const service = await storageOf(store, serviceId, scope);
      const { bucket, objects } = await transfers.run(ownerOfActor(principal.actor), () =>
        actorHosts.listObjects(service, prefix),
      );
      return { bucket, prefix, objects };
    },
  }),

  defineRoute({
    ...shared,
    method: 'POST',
    path: '/api/minio/objects',
    permission: 'objects:write',
    summary: 'Upload an object',
    query: ServiceQuery,
    form: UploadForm,
    data: Uploaded,
    errors: [
      ...shared.errors,
      ...(['invalid_input', 'body_too_large', 'unsupported_media_type', 'too_many_uploads'] as const),
    ],
    handle: async (
      { form: { file, key }, query: { service: serviceId }, principal, scope, addAuditDetails },
      { store, actorHosts },
    ) => {
      requireKey('form.key', key);
      addAuditDetails({ key });
      const service = await storageOf(store, serviceId, scope);
      const { bucket } = await transfers.run(ownerOfActor(principal.actor), () =>
        actorHosts.writeObject(service, key, {
          size: file.size,
          type: contentType(key),
          content: () => createReadStream(file.path, { highWaterMark: CHUNK_BYTES }),
        }),
      );
      return { key, bucket, size: file.size, message: `Stored as "${key}" in the bucket "${bucket}"` };
    },
  }),

  defineRoute({
    ...shared,
    method: 'GET',
    path: '/api/minio/objects/{key...}',
    permission: 'objects:read',
    summary: 'Download an object; its key may have slashes',
    params: KeyParams,
    query: ServiceQuery,
    data: ObjectContent,
    produces: '*/*',
    alternatives: CONDITIONAL_RESPONSES,
    handle: async (
      { params: { key }, query: { service: serviceId }, raw, header, principal, scope },
      { store, actorHosts },
    ) => {
      requireKey('path.key', key);
      const service = await storageOf(store, serviceId, scope);
      const method = raw.method === 'HEAD' ? 'HEAD' : 'GET';
      const forwarded = Object.fromEntries(FORWARDED_HEADERS.map((name) => [name, header(name)]));
      const { status, headers, content } = await transfers.run(
        ownerOfActor(principal.actor),
        () => actorHosts.readObject(service, key, method, forwarded),
        (answer) => answer.content,
      );
      const isEmpty = method === 'HEAD' || status === 304 || status === 416;
      if (isEmpty) content.resume();
      return new Reply(status, isEmpty ? Readable.from([]) : content, {
        ...headers,
        ...UNTRUSTED_CONTENT_HEADERS,
        'Content-Type': contentType(key),
      });
    },
  }),

  defineRoute({
    ...shared,
    method: 'DELETE',
    path: '/api/minio/objects/{key...}',
    permission: 'objects:write',
    summary: 'Delete an object; its key may have slashes',
    params: KeyParams,
    query: ServiceQuery,
    data: ObjectDeleted,
    handle: async (
      { params: { key }, query: { service: serviceId }, principal, scope },
      { store, actorHosts },
    ) => {
      requireKey('path.key', key);
      const service = await storageOf(store, serviceId, scope);
      const { bucket, deleted } = await transfers.run(ownerOfActor(principal.actor), () =>
        actorHosts.deleteObject(service, key),
      );
      return { key, bucket, deleted };
    },
  }),
];

/** The storage that a request is for. @throws AppError no_object_storage, not_found, invalid_input */
async function storageOf(store: Database, id: string | undefined, scope: Scope): Promise<string | undefined> {
  if (id === undefined) {
    // Without limits the actor host chooses.
    if (!scope) return undefined;
    const visible = await activeStorage(store, scope);
    if (visible === undefined)
      throw new AppError('no_object_storage', 'No object-storage service of your domains is active');
    return visible;
  }
  const service = requireFound(await findService(store, id), 'service', id);
  if (service.service_type !== 'objstore') {
    throw new AppError(
      'invalid_input',
      `query.service: "${service.name}" is a service of type ${service.service_type}, not objstore`,
    );
  }
  return id;
}

function requireKey(location: string, key: string): void {
  const problem = objectKeyProblem(key);
  if (problem !== undefined) throw new AppError('invalid_input', `${location}: ${problem}`);
}

function contentType(key: string): string {
  return mime.lookup(key) || 'application/octet-stream';
}
