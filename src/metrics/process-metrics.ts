/**
 * Metrics of all processes of a machine behind one address: each process serves its own on a Unix socket in one
 * folder (and on METRICS_PORT, if set); `web` collects and aggregates them.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import { basename, join } from 'node:path';
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { toError } from '../errors.js';
import { isErrno } from '../util/errno.js';
import type { Logger } from '../util/log.js';
import { isAlive } from '../util/process-liveness.js';

/** The metrics of a process, as prom-client exchanges them. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>[];

/** Reads the metrics of this process. */
export type MetricSource = () => Promise<MetricSnapshot>;

/** Where a process serves its metrics. */
export interface MetricsConfig {
  readonly HOST: string;
  readonly METRICS_PORT: number | undefined;
}

/** The name of a socket, with the id of its process. */
const SOCKET_NAME = /^metrics-(\d+)-.*\.sock$/;
const COLLECT_TIMEOUT_MS = 2_000;

/**
 * Serves the metrics of a process until the returned function is called.
 * @param folder of the sockets of all processes
 */
export async function serveMetrics(
  folder: string,
  config: MetricsConfig,
  source: MetricSource,
): Promise<() => Promise<void>> {
  // A handler that has the user of this process must not guess it.
  const name = `metrics-${process.pid}-${randomBytes(8).toString('hex')}.sock`;
  const path = join(folder, name);
  // Whoever can enter its folder may connect.
  const servers = [await listening(createServer(respondJson(source)), { path, writableAll: true })];
  if (config.METRICS_PORT !== undefined) {
    servers.push(
      await listening(createServer(respondText(source)), { host: config.HOST, port: config.METRICS_PORT }),
    );
  }
  return async () => {
    await Promise.all(servers.map(closed));
  };
}

/** The metrics of this process and of all that serve theirs in the folders, in Prometheus' text format. */
export async function collectMetrics(
  folders: readonly string[],
  own: MetricSource,
  log: Logger,
): Promise<string> {
  const sockets = await Promise.all(folders.map(socketsIn));
  const snapshots = await Promise.all(
    sockets.flat().map(async (socket) => {
      try {
        return await fetchSnapshot(socket);
      } catch (thrown) {
        if (!isErrno(thrown, 'ECONNREFUSED'))
          log.warn({ err: toError(thrown), socket }, 'metrics of a process could not be read');
        else await removeAbandoned(socket);
        return [];
      }
    }),
  );
  return AggregatorRegistry.aggregate([await own(), ...snapshots]).metrics();
}

async function socketsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    // No actor host has run here yet.
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  });
  return names.filter((name) => SOCKET_NAME.test(name)).map((name) => join(folder, name));
}

/** Removes the socket of a process that was killed. One that runs has just made it, and is about to listen. */
async function removeAbandoned(socket: string): Promise<void> {
  const [, pid] = SOCKET_NAME.exec(basename(socket)) ?? [];
  // Who may not remove it leaves it to those that make others.
  if (!isAlive(Number(pid))) await rm(socket, { force: true }).catch(() => undefined);
}

/** The media type of `collectMetrics`. */
export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Reads the metrics of a registry. */
export function registrySource(registry: Registry): MetricSource {
  return () => registry.getMetricsAsJSON() as Promise<MetricSnapshot>;
}

function respondJson(source: MetricSource): Parameters<typeof createServer>[1] {
  return (_request, response) => {
    source().then(
      (snapshot) => response.setHeader('content-type', 'application/json').end(JSON.stringify(snapshot)),
      (error: unknown) => response.writeHead(500).end(toError(error).message),
    );
  };
}

function respondText(source: MetricSource): Parameters<typeof createServer>[1] {
  return (_request, response) => {
    source()
      .then((snapshot) => AggregatorRegistry.aggregate([snapshot]).metrics())
      .then(
        (text) => response.setHeader('content-type', METRICS_CONTENT_TYPE).end(text),
        (error: unknown) => response.writeHead(500).end(toError(error).message),
      );
  };
}

function fetchSnapshot(socketPath: string): Promise<MetricSnapshot> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath, path: '/', timeout: COLLECT_TIMEOUT_MS, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          if (response.statusCode !== 200) return reject(new Error(text));
          try {
            return resolve(JSON.parse(text) as MetricSnapshot);
          } catch (error) {
            return reject(error);
          }
        });
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.on('error', reject);
    outgoing.end();
  });
}

function listening(
  server: Server,
  options: { path: string; writableAll: true } | { host: string; port: number },
): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => resolve(server));
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
