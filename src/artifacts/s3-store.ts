/** Artifacts in an S3 bucket: several machines share them. */

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type AgentOptions, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import { Client } from 'minio';
import { type Config, ConfigError } from '../config.js';
import { AppError, toError } from '../errors.js';
import type { ArtifactStore, Digest } from './artifact-store.js';

/** A server that says nothing for so long does not answer any more. */
const IDLE_MS = 30_000;

export class S3Store implements ArtifactStore {
  readonly #client: Client;
  readonly #bucket: string;
  readonly #prefix: string;

  /**
   * @param idleMs after so long without a byte of the server, a request fails
   * @throws ConfigError when the URL or the credentials are incomplete.
   */
  constructor(url: string, config: Config, idleMs = IDLE_MS) {
    const match = /^s3:\/\/([^/]+)\/?(.*)$/.exec(url);
    if (!match?.[1])
      throw new ConfigError(`ARTIFACTS_URL: "${url}" names no bucket; write s3://bucket/prefix`);
    if (!config.S3_ACCESS_KEY || !config.S3_SECRET_KEY) {
      throw new ConfigError('ARTIFACTS_URL: an s3:// store needs S3_ACCESS_KEY and S3_SECRET_KEY');
    }
    const endpoint = new URL(config.S3_ENDPOINT ?? `https://s3.${config.S3_REGION}.amazonaws.com`);
    this.#bucket = match[1];
    this.#prefix = match[2] ? `${match[2].replace(/\/+$/, '')}/` : '';
    this.#client = new Client({
      endPoint: endpoint.hostname,
      port: Number(endpoint.port) || (endpoint.protocol === 'https:' ? 443 : 80),
      useSSL: endpoint.protocol === 'https:',
      region: config.S3_REGION,
      accessKey: config.S3_ACCESS_KEY,
      secretKey: config.S3_SECRET_KEY,
      transportAgent: agentOf(endpoint, idleMs),
    });
  }

  async has(digest: Digest): Promise<boolean> {
    try {
      await this.#client.statObject(this.#bucket, this.#prefix + digest);
      return true;
    } catch (thrown) {
      const error = toError(thrown);
      if ('code' in error && error.code === 'NotFound') return false;
      throw unavailable(error);
    }
  }

  async put(digest: Digest, file: string): Promise<void> {
    // With the size given, the client sends one request instead of buffering a multipart upload.
    const { size } = await stat(file);
    const content = createReadStream(file);
    await this.#using(() =>
      this.#client.putObject(this.#bucket, this.#prefix + digest, content, size),
    ).finally(() => content.destroy());
  }

  async fetch(digest: Digest, destination: string): Promise<void> {
    await this.#using(() => this.#client.fGetObject(this.#bucket, this.#prefix + digest, destination));
  }

  async remove(digest: Digest): Promise<void> {
    await this.#using(() => this.#client.removeObject(this.#bucket, this.#prefix + digest));
  }

  /** @throws AppError artifact_store_unavailable, which says why */
  async #using(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      throw unavailable(toError(thrown));
    }
  }
}

/** Connections that end when the server says nothing: the library waits for ever. */
function agentOf({ protocol }: URL, idleMs: number): HttpAgent {
  const Agent = protocol === 'https:' ? HttpsAgent : HttpAgent;
  const options: AgentOptions = { keepAlive: true, timeout: idleMs };
  const agent = new Agent(options);
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (...args) => {
    const socket = connect(...args) as Socket;
    const seconds = idleMs / 1000;
    return socket.setTimeout(idleMs, () => socket.destroy(new Error(`no answer for ${seconds} seconds`)));
  };
  return agent;
}

/** A missing bucket or artifact counts as unavailable, too: it is a fault of the installation. */
function unavailable(cause: Error): AppError {
  return new AppError(
    'artifact_store_unavailable',
    `The artifact store cannot be used: ${cause.message}`,
    {},
    { cause },
  );
}
