/** Services, endpoints and bindings created through the API, for tests of service calls. */
import { runDirectory, tokenFolder } from '../../src/bootstrap/run-directory.js';
import { createSecretBox, type SecretBox } from '../../src/secrets/secret-box.js';
import { issueServiceToken } from '../../src/secrets/service-token.js';
import type { HttpClient } from './client.js';
import { uniqueName } from './names.js';
import { must, type Stack } from './processes.js';
import { connectServices, type ServiceClient } from './service-client.js';

/** SECRET_KEY of stacks in which tests act as handlers. */
export const SECRET_KEY = 'the secret key of the tests';

export async function createService(
  api: HttpClient,
  service_type: string,
  config: object,
  name: string = uniqueName(service_type),
): Promise<string> {
  const created = await must(api.post('/api/services', { name, service_type, config }));
  return (created as { id: string }).id;
}

/** An answer of activate or deactivate. */
export interface Activity {
  readonly success: boolean;
  readonly data?: { readonly active: boolean; readonly message: string };
  readonly error?: string;
}

/** Creates a service and activates it; returns its id. */
export async function activeService(
  api: HttpClient,
  service_type: string,
  config: object,
  name?: string,
): Promise<string> {
  const id = await createService(api, service_type, config, name);
  const { body } = await api.post(`/api/services/${id}/activate`);
  if (!(body as Activity).success) throw new Error(`Not activated: ${JSON.stringify(body)}`);
  return id;
}

/** An endpoint that is not compiled; returns its id. */
export async function createEndpoint(api: HttpClient, path: string): Promise<string> {
  const created = await must(api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*' }));
  return (created as { id: string }).id;
}

export async function bind(
  api: HttpClient,
  endpointId: string,
  service_id: string,
  pool_id: string,
): Promise<void> {
  await must(api.post(`/api/endpoints/${endpointId}/services`, { service_id, pool_id }));
}

let secrets: SecretBox | undefined;

/**
 * A token as the handler of an endpoint has it; the processes have to run with SECRET_KEY.
 * @param user of the handler, if it has one of its own
 */
export async function tokenFor(dataDir: string, endpointId: string, user?: number): Promise<string> {
  const folder = await tokenFolder(await runDirectory(dataDir));
  // Once: to derive the key takes 30 ms, in which nothing else happens here.
  secrets ??= createSecretBox(SECRET_KEY);
  return (await issueServiceToken(secrets, folder, endpointId, user)).token;
}

/** Connects as the handler of an endpoint does; the stack has to run with SECRET_KEY. */
export async function connectAs(stack: Stack, endpointId: string): Promise<ServiceClient> {
  return connectServices(stack.servicesSocket, await tokenFor(stack.dataDir, endpointId));
}
