/** The dependencies of the management API, assembled by the web process or a test. */
import type { Readable } from 'node:stream';
import type { ArtifactStore } from '../artifacts/artifact-store.js';
import type { Config } from '../config.js';
import type { ImportReader } from '../import/reader.js';
import type { Gateways } from '../internal/gateways.js';
import type { ConnectionTest } from '../model/connection-test.js';
import type { Queues } from '../queues/queues.js';
import type { Changes } from '../reconcile/changes.js';
import type { SecretBox } from '../secrets/secret-box.js';
import type { Topic } from '../store/announcements.js';
import type { Database } from '../store/database.js';
import type { Threads } from '../threads/threads.js';
import type { Logger } from '../util/log.js';
import type { SpoolRoom } from '../util/spool-room.js';
import type { IdentityProvider } from './access/identity-provider.js';

/**
 * The API's client of the actor hosts. Every method rejects with an AppError: no_actor_host, no_object_storage,
 * not_found, invalid_input or backend_failed. Without a service id, the object storage that has been active longest is
 * used.
 */
export interface ActorHosts {
  /** @param owner whose turn it takes */
  testService(id: string, owner: string): Promise<ConnectionTest>;
  /** All objects with this key prefix. */
  listObjects(
    service: string | undefined,
    prefix: string,
  ): Promise<{
    readonly bucket: string;
    readonly objects: { readonly key: string; readonly size: number; readonly last_modified: string }[];
  }>;
  /** An object, a range of it, or no content (304), according to the request headers. */
  readObject(
    service: string | undefined,
    key: string,
    method: 'GET' | 'HEAD',
    headers: Readonly<Record<string, string | undefined>>,
  ): Promise<{
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly content: Readable;
  }>;
  /** Stores exactly `size` bytes; `content` opens the stream. */
  writeObject(
    service: string | undefined,
    key: string,
    object: { readonly size: number; readonly type: string; readonly content: () => Readable },
  ): Promise<{ readonly bucket: string }>;
  /** Deletes an object if it exists. */
  deleteObject(
    service: string | undefined,
    key: string,
  ): Promise<{ readonly bucket: string; readonly deleted: boolean }>;
}

/** What `changes` of the dependencies listens to. */
export const API_TOPICS = [
  ...['audit', 'endpoint', 'observation', 'service', 'service_observation', 'node'],
  ...['build', 'import', 'import_end', 'apply', 'log'],
] as const satisfies readonly Topic[];

export interface ApiDependencies {
  readonly store: Database;
  readonly config: Config;
  readonly log: Logger;
  readonly secrets: SecretBox;
  /** Undefined without OpenID Connect. */
  readonly identityProvider: IdentityProvider | undefined;
  readonly queues: Queues;
  /** Announcements of builds, imports and observations. */
  readonly changes: Changes;
  readonly artifacts: ArtifactStore;
  /** Folders of the Unix sockets on which the processes of this machine serve their metrics. */
  readonly metricsFolders: readonly string[];
  readonly actorHosts: ActorHosts;
  readonly gateways: Pick<Gateways, 'invoke' | 'route'>;
  /** Threads for what one request can make long. */
  readonly threads: Pick<Threads, 'run'>;
  readonly importReader: Pick<ImportReader, 'readRequest' | 'readBundle' | 'readFolder' | 'room'>;
  /** Room for files that are uploaded to object storages. */
  readonly uploadRoom: SpoolRoom;
  /** Aborted when the process begins to stop: ends event streams. */
  readonly stopping: AbortSignal;
  /** Aborted some time after `stopping`: requests that wait for builds or imports are answered with 504. */
  readonly waitsEnd: AbortSignal;
}
