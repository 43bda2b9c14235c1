/** Schedules of files. */
import type { EndpointObject, ScheduleObject } from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import { toHandlerRequest } from '../../model/handler-request.js';
import { cronProblem, spelledTimezone, timezoneProblem } from '../../queues/cron.js';
import type { FileEndpointInput } from './edge-file.js';

type ScheduleInput = NonNullable<FileEndpointInput['schedules']>[number];

/**
 * A schedule of a file in the form in which it is stored. Whether the endpoint takes its request is not checked here:
 * what is as it was may stay.
 * @throws AppError naming the member
 */
export function scheduleObject(
  { method, route }: Pick<EndpointObject, 'method' | 'route'>,
  {
    cron,
    timezone = 'UTC',
    enabled = true,
    method: own,
    path,
    headers = {},
    body,
    body_base64,
  }: ScheduleInput,
): ScheduleObject {
  const problem = timezoneProblem(timezone);
  if (problem !== undefined) throw new AppError('invalid_input', `schedules: timezone: ${problem}`);
  if (path === undefined && route.includes('{'))
    throw new AppError(
      'invalid_input',
      `schedules: path: is needed, because the route ${route} has parameters`,
    );
  if (body !== undefined && body_base64 !== undefined)
    throw new AppError(
      'invalid_input',
      'schedules: body and body_base64 exclude each other: give one of them',
    );
  const isJson = body !== undefined && typeof body !== 'string';
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  const bytes =
    body === undefined
      ? Buffer.from(body_base64 ?? '', 'base64')
      : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return {
    cron,
    timezone: spelledTimezone(timezone),
    enabled,
    method: own ?? method,
    path: path ?? route,
    headers: isJson && !hasType ? { ...headers, 'Content-Type': 'application/json' } : headers,
    body: bytes.length > 0 ? bytes.toString('base64') : null,
  };
}

/** @param maxBytes of the body @throws AppError when it cannot be sent */
export function requireSendable(
  endpoint: Pick<EndpointObject, 'method' | 'route'>,
  { cron, method, path, headers, body }: ScheduleObject,
  maxBytes: number,
): void {
  const problem = cronProblem(cron);
  if (problem !== undefined) throw new AppError('invalid_input', `body.cron: ${problem}`);
  toHandlerRequest(
    endpoint,
    { method, path, headers, ...(body !== null && { body_base64: body }) },
    maxBytes,
  );
}
