/** `edge service create|test|activate|deactivate|bind`. */

import { CliError, UsageError } from '../errors.js';
import { readInput } from '../files.js';
import { idOf } from '../names.js';
import { secretFrom } from '../prompt.js';
import type { CommonOptions, Session } from '../session.js';
import { safeLine } from '../text.js';

interface CreateOptions extends CommonOptions {
  readonly config: string;
  readonly activate?: boolean;
}

export async function create(
  session: Session,
  options: CreateOptions,
  name: string,
  type: string,
): Promise<void> {
  const text =
    options.config === '-' ? await secretFrom(session, 'config') : readInput(options.config).toString('utf8');
  const { data: service } = await session.api.call('POST /api/services', {
    body: { name, service_type: type as never, config: configOf(text) },
  });
  if (options.activate)
    await session.api.call('POST /api/services/{id}/activate', { params: { id: service.id } });
  session.out.result(options.activate ? { ...service, active: true } : service, () =>
    session.out.line(safeLine(`Created: service ${service.name}${options.activate ? ', active' : ''}`)),
  );
}

export async function test(session: Session, _options: CommonOptions, name: string): Promise<void> {
  const id = await idOf(session, 'service', name);
  const tested = await session.api.get('POST /api/services/{id}/test', { params: { id } });
  if (!tested.connected)
    throw new CliError(`${name} cannot be reached: ${tested.error}`, { code: 'backend_failed' });
  session.out.result(tested, () => session.out.line(safeLine(`${tested.message} (${tested.latency_ms} ms)`)));
}

export async function activate(session: Session, _options: CommonOptions, name: string): Promise<void> {
  const id = await idOf(session, 'service', name);
  const { data, warnings } = await session.api.call('POST /api/services/{id}/activate', { params: { id } });
  session.out.warnings(warnings);
  session.out.result(data, () => session.out.line(safeLine(data.message)));
}

export async function deactivate(session: Session, _options: CommonOptions, name: string): Promise<void> {
  const id = await idOf(session, 'service', name);
  const { data } = await session.api.call('POST /api/services/{id}/deactivate', { params: { id } });
  session.out.result(data, () => session.out.line(safeLine(data.message)));
}

export async function bind(
  session: Session,
  _options: CommonOptions,
  service: string,
  endpoint: string,
  pool: string,
): Promise<void> {
  const [service_id, id] = [
    await idOf(session, 'service', service),
    await idOf(session, 'endpoint', endpoint),
  ];
  const bound = await session.api.get('POST /api/endpoints/{id}/services', {
    params: { id },
    body: { service_id, pool_id: pool },
  });
  session.out.result(bound, () =>
    session.out.line(safeLine(`The handler of ${endpoint} reaches ${service} as the pool ${pool}`)),
  );
}

function configOf(text: string): object {
  try {
    const config: unknown = JSON.parse(text);
    if (typeof config === 'object' && config !== null) return config;
  } catch {
    // Said below.
  }
  throw new UsageError(
    'The config is no JSON object',
    'Such as {"path": "app.db"}; docs/SERVICES.md has all settings.',
  );
}
