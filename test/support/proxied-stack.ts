/** A stack whose PostgreSQL a test can take away and give back. */
import { type Stack, type StackOptions, startStack } from './processes.js';
import { startProxy, type TcpProxy } from './tcp-proxy.js';

export interface ProxiedStack {
  readonly stack: Stack;
  /** On the way of all processes to PostgreSQL. */
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
