/** A stack whose PostgreSQL a test can make unavailable. */
import { type Stack, type StackOptions, startStack } from './processes.js';
import { startProxy, type TcpProxy } from './tcp-proxy.js';

export interface ProxiedStack {
  readonly stack: Stack;
  /** The proxy between all processes and PostgreSQL. */
  readonly database: TcpProxy;
  close(): Promise<void>;
}

export async function startProxiedStack(options: StackOptions = {}): Promise<ProxiedStack> {
  let database: TcpProxy | undefined;
  const databaseUrl = async (url: string) => {
    database = await startProxy(url);
    return database.url;
  };
  const stack = await startStack({ ...options, databaseUrl });
  if (!database) throw new Error('the stack has not asked for its database');
  const proxy = database;
  const close = async () => {
    await stack.close();
    await proxy.down();
  };
  return { stack, database: proxy, close };
}
