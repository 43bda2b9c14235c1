/**
 * The SDK as a registry of cargo, at `/crates`: `cargo check` works wherever the API can be reached, and needs no
 * checkout.
 * The protocol: https://doc.rust-lang.org/cargo/reference/registry-index.html#sparse-protocol
 */
import { createHash } from 'node:crypto';
import { AppError } from '../../errors.js';
import { CRATES_PATH } from '../access/crates-path.js';
import { requestAddress } from '../access/request-address.js';
import type { ApiDependencies } from '../api-dependencies.js';
import type { ApiContext, Next } from '../route/context.js';
import { sdkCrates } from './sdk-crates.js';

const FILES = '/files/';

/** Mount it after authentication. */
export function crates({ config }: Pick<ApiDependencies, 'config'>) {
  return async (context: ApiContext, next: Next): Promise<unknown> => {
    if (!context.path.startsWith(`${CRATES_PATH}/`)) return next();
    if (!['GET', 'HEAD'].includes(context.method)) {
      context.set('Allow', 'GET, HEAD');
      throw new AppError('method_not_allowed', `${context.path} has GET, HEAD, not ${context.method}`);
    }
    const registry = `${requestAddress(context.state.client, context.get('Host'), config)}${CRATES_PATH}`;
    const path = context.path.slice(CRATES_PATH.length);
    if (path === '/config.json') {
      // Who needs no credential is nobody in particular.
      const isOpen = context.state.principal?.actor.kind === 'anonymous';
      context.body = { dl: `${registry}${FILES}{crate}-{version}.crate`, 'auth-required': !isOpen };
      return undefined;
    }
    const found = contentAt(path, await sdkCrates(`sparse+${registry}/`));
    // Cargo takes it as "no such crate".
    if (!found)
      throw new AppError('not_found', `There is nothing at ${context.path}: the registry has the SDK only`);
    context.status = 200;
    context.etag = createHash('sha256').update(found.content).digest('base64url');
    if (context.fresh) {
      context.status = 304;
      return undefined;
    }
    context.type = found.type;
    context.body = found.content;
    return undefined;
  };
}

function contentAt(
  path: string,
  packed: Awaited<ReturnType<typeof sdkCrates>>,
): { readonly content: Buffer; readonly type: string } | undefined {
  for (const { name, file, entry, archive } of packed) {
    if (path === `/${name.slice(0, 2)}/${name.slice(2, 4)}/${name}`)
      return { content: Buffer.from(`${entry}\n`), type: 'text/plain' };
    if (path === `${FILES}${file}` || path === `${FILES}${encodeURIComponent(file)}`)
      return { content: Buffer.from(archive), type: 'application/gzip' };
  }
  return undefined;
}
