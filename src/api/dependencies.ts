/** What the management API works with. Assembled by the process that serves it, or by a test. */
import type { Readable } from 'node:stream';
import type { ArtifactStore } from '../artifacts/artifact-store.js';
import type { Config } from '../config.js';
import type { ImportReader } from '../import/reader.js';
import type { Logger } from '../log.js';
import type { Queues } from '../queues/queues.js';
import type { Changes } from '../reconcile/changes.js';
import type { SecretBox } from '../secrets.js';
import type { Database } from '../store/database.js';

/** The outcome of a connection test. */
export type ConnectionTest =
  | { readonly connected: true; readonly latency_ms: number; readonly message: string }
  | { readonly connected: false; readonly error: string };

/**
 * The actor hosts, as the API sees them. Every method rejects with an AppError: no_actor_host, no_object_storage,
 * not_found, invalid_input or backend_failed. Without a service, the object storage is meant that has been active longest.
 */
export interface ActorHosts {
  testService(id: string): Promise<ConnectionTest>;
  /** All objects with a prefix. */
  listObjects(
    service: string | undefined,
    prefix: string,
  ): Promise<{
    readonly bucket: string;
    readonly objects: { readonly key: string; readonly size: number; readonly last_modified: string }[];
  }>;
  /** What the headers of a request ask for: all of an object, a range of it, or nothing (304). */
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
  /** Stores exactly `size` bytes; `content` makes the stream of them. */
  writeObject(
    service: string | undefined,
    key: string,
    object: { readonly size: number; readonly type: string; readonly content: () => Readable },
  ): Promise<{ readonly bucket: string }>;
  /** Deletes an object if there is one. */
  deleteObject(
    service: string | undefined,
    key: string,
  ): Promise<{ readonly bucket: string; readonly deleted: boolean }>;
}

export interface ApiDependencies {
  readonly store: Database;
  readonly config: Config;
  readonly log: Logger;
  readonly secrets: SecretBox;
  readonly queues: Queues;
  /** Announcements of builds, imports and observations. */
  readonly changes: Changes;
  readonly artifacts: ArtifactStore;
  /** Where the processes of this machine offer their metrics. */
  readonly runDir: string;
  readonly actorHosts: ActorHosts;
  readonly importReader: Pick<ImportReader, 'readRequest' | 'readBundle'>;
  /** Aborted when the process begins to stop: answers that could go on for long end then. */
  readonly stopping: AbortSignal;
  /** Aborted some time after that: those who still wait for long work are told that it goes on. */
  readonly waitsEnd: AbortSignal;
}
