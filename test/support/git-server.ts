/** A git repository with a crate, served over HTTP by git itself. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { tempDir } from './temp.js';

export interface GitServer {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Of the repository. */
  readonly url: string;
  /** The revision, 40 hexadecimal digits. */
  readonly revision: string;
  close(): Promise<void>;
}

/**
 * @param files of the only revision, by their paths
 * @param login `user:password` that it wants, if any
 */
export async function startGitServer(
  files: Readonly<Record<string, string>>,
  login?: string,
): Promise<GitServer> {
  const folder = await tempDir('git');
  const repository = join(folder.path, 'crate.git');
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@test', '-C', repository, ...args], {
      encoding: 'utf8',
    }).trim();
  mkdirSync(repository);
  git('init', '--quiet');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(repository, path)), { recursive: true });
    writeFileSync(join(repository, path), text);
  }
  git('add', '.');
  git('commit', '--quiet', '--message', 'crate');
  const revision = git('rev-parse', 'HEAD');
  const server = createServer((request, response) => {
    const wanted = login === undefined ? undefined : `Basic ${Buffer.from(login).toString('base64')}`;
    if (request.headers.authorization === wanted) return answer(folder.path, request, response);
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ origin, url: `${origin}/crate.git`, revision },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await folder.remove();
    },
  };
}

/** https://git-scm.com/docs/git-http-backend */
function answer(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'http://git');
  const env = {
    ...process.env,
    ...{ GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: '1', REMOTE_ADDR: '127.0.0.1' },
    ...{ PATH_INFO: url.pathname, QUERY_STRING: url.search.slice(1), REQUEST_METHOD: request.method },
    CONTENT_TYPE: request.headers['content-type'] ?? '',
    HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
    GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    // It serves repositories of others, too.
    ...{ GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' },
  };
  const backend = spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  request.pipe(backend.stdin);
  const chunks: Buffer[] = [];
  backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  backend.stdout.on('end', () => {
    const output = Buffer.concat(chunks);
    const end = output.indexOf('\r\n\r\n');
    const headers = output
      .toString('latin1', 0, end)
      .split('\r\n')
      .map((line) => line.split(': '));
    const { Status: status = '200', ...others } = Object.fromEntries(headers) as Record<string, string>;
    response.writeHead(Number.parseInt(status, 10), others).end(output.subarray(end + 4));
  });
}
