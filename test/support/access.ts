/** People of the tests of access: users, their sessions and tokens, at an API that has them. */
import type { Permission, Role } from '../../src/model/permission.js';
import type { TestApi } from './api.js';
import { clientBy, type HttpClient, type HttpRequest, type HttpResponse } from './client.js';
import { expectData } from './expect.js';

export const PASSWORD = 'correct horse battery';
export const ADMIN = 'root@example.test';

/** Somebody, as the headers that they send. */
export interface Person {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A client all of whose requests are those of a person. */
export function clientOf(api: Pick<HttpClient, 'send'>, { headers }: Person): HttpClient {
  return clientBy((method, path, options = {}) =>
    api.send(method, path, { ...options, headers: { ...options.headers, ...headers } }),
  );
}

export async function addUser(
  api: Pick<TestApi, 'post'>,
  by: HttpRequest,
  user: { readonly email: string; readonly role: Role; readonly domains?: readonly string[] },
): Promise<Person> {
  const created = await api.post('/api/users', { name: user.email, password: PASSWORD, ...user }, by);
  const { id } = expectData<{ id: string }>(created, 201);
  return { id, headers: await signIn(api, user.email) };
}

/** @returns the header with the cookie of a new session */
export async function signIn(
  api: Pick<TestApi, 'post'>,
  email: string,
  password = PASSWORD,
): Promise<Readonly<Record<string, string>>> {
  const response = await api.post('/api/session', { email, password });
  expectData(response, 201);
  return { cookie: cookieOf(response) };
}

export function cookieOf(response: HttpResponse): string {
  return response.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

/** @returns the header with a new token */
export async function makeToken(
  api: Pick<TestApi, 'post'>,
  by: HttpRequest,
  permissions: readonly Permission[],
  domains: readonly string[] = [],
): Promise<Person & { readonly token: string }> {
  const response = await api.post('/api/tokens', { name: 'a token', permissions, domains }, by);
  const { id, token } = expectData<{ id: string; token: string }>(response, 201);
  return { id, token, headers: { authorization: `Bearer ${token}` } };
}
