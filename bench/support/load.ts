/** Load from another process: wrk. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { tempDir } from '../../test/support/temp.js';

/** The results of wrk. */
export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

export interface Load {
  readonly url: string;
  readonly seconds: number;
  readonly connections: number;
  /** Sent with POST when given. */
  readonly body?: string;
  /** A wrk script in Lua, instead of `body`, for requests that differ from each other. */
  readonly script?: string;
}

/**
 * Puts load on a server.
 * @throws Error when any response was not a success
 */
export async function load({
  url,
  seconds,
  connections,
  body,
  script = luaScript(body),
}: Load): Promise<LoadResult> {
  const folder = await tempDir('wrk');
  try {
    const file = join(folder.path, 'load.lua');
    await writeFile(file, script);
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', file, url];
    const { stdout } = await execa('wrk', args);
    const failed = /^ +(?:Non-2xx or 3xx responses|Socket errors): .*/m.exec(stdout);
    if (failed) throw new Error(`wrk saw failures at ${url}: ${failed[0].trim()}`);
    return {
      requests: Number(/^ +(\d+) requests in /m.exec(stdout)?.[1]),
      requestsPerSecond: Number(/^Requests\/sec: +([\d.]+)/m.exec(stdout)?.[1]),
      p50: milliseconds(/^ +50% +(\S+)/m.exec(stdout)?.[1]),
      p99: milliseconds(/^ +99% +(\S+)/m.exec(stdout)?.[1]),
    };
  } finally {
    await folder.remove();
  }
}

function luaScript(body: string | undefined): string {
  if (body === undefined) return '';
  return `wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/octet-stream"\nwrk.body = string.rep("x", ${body.length})\n`;
}

function milliseconds(text: string | undefined): number {
  const [, value, unit] = /^([\d.]+)(us|ms|s)$/.exec(text ?? '') ?? [];
  return Number(value) * (unit === 'us' ? 0.001 : unit === 's' ? 1000 : 1);
}
