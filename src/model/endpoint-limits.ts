/**
 * Limits of an endpoint: what its author may set, and what is in force. The configuration has a value for each, which
 * is both the default and the most an endpoint may ask for: its author is not the operator of the machine.
 */
import type { Config } from '../config.js';
import { AppError } from '../errors.js';

/** What an author has set; what is left out is as the configuration says. */
export interface EndpointLimits {
  /** Memory of all its processes together, MiB. */
  readonly memory_mb?: number;
  /** Processes and threads. */
  readonly processes?: number;
  /** Open files and connections of each process. */
  readonly open_files?: number;
  /** CPU time of all its processes, percent of one core, averaged over ten seconds. */
  readonly cpu_percent?: number;
  /** Deadline of one request, milliseconds. */
  readonly timeout_ms?: number;
  /** Requests in it at the same time on one gateway. */
  readonly concurrent_requests?: number;
}

/** What is in force: all of them, but for CPU time, which may have no limit. */
export type LimitsInForce = Required<Omit<EndpointLimits, 'cpu_percent'>> &
  Pick<EndpointLimits, 'cpu_percent'>;

interface LimitKind {
  /** Its default, and the most it may be. */
  readonly setting:
    | 'HANDLER_MEMORY_MB'
    | 'HANDLER_PROCESSES'
    | 'HANDLER_OPEN_FILES'
    | 'HANDLER_CPU_PERCENT'
    | 'REQUEST_TIMEOUT_MS'
    | 'HANDLER_CONCURRENT_REQUESTS';
  /** The least with which a handler works. */
  readonly minimum: number;
  readonly maximum: number;
  readonly description: string;
}

type LimitName = keyof EndpointLimits;

const KINDS: Readonly<Record<LimitName, LimitKind>> = {
  memory_mb: {
    setting: 'HANDLER_MEMORY_MB',
    minimum: 16,
    maximum: 1_048_576,
    description: 'Memory of all its processes together, MiB. Over it they are ended',
  },
  processes: {
    setting: 'HANDLER_PROCESSES',
    minimum: 16,
    maximum: 1_000_000,
    description: 'Processes and threads; no more can be started',
  },
  open_files: {
    setting: 'HANDLER_OPEN_FILES',
    minimum: 32,
    maximum: 1_048_576,
    description: 'Open files and connections of one process; no more can be opened',
  },
  cpu_percent: {
    setting: 'HANDLER_CPU_PERCENT',
    minimum: 1,
    maximum: 102_400,
    description:
      'CPU time of all its processes, percent of one core, averaged over ten seconds. Over it they are ended',
  },
  timeout_ms: {
    setting: 'REQUEST_TIMEOUT_MS',
    minimum: 1,
    maximum: 3_600_000,
    description: 'Deadline of one request, milliseconds. Over it the answer is 504',
  },
  concurrent_requests: {
    setting: 'HANDLER_CONCURRENT_REQUESTS',
    minimum: 1,
    maximum: 65_536,
    description:
      'Requests in it at the same time, on each gateway, divided among its fronts. Over it the answer is 429',
  },
};

const ENTRIES = Object.entries(KINDS) as readonly [LimitName, LimitKind][];

/** JSON Schema of `EndpointLimits`. */
export const LIMITS_SCHEMA = {
  type: 'object',
  description:
    'Limits of its handler that are tighter than those of the configuration. They are in force at once: processes are replaced without losing a request.',
  properties: Object.fromEntries(
    ENTRIES.map(([name, { setting, minimum, maximum, description }]) => [
      name,
      {
        type: 'integer',
        minimum,
        maximum,
        description: `${description}. At most ${setting}, which is also the default.`,
      },
    ]),
  ),
  // A misspelt limit would silently not be in force.
  additionalProperties: false,
} as const;

/** The settings that limits depend on. */
export type LimitSettings = Pick<Config, LimitKind['setting']>;

/**
 * Checks limits, which fit the schema, against the configuration.
 * @param root where the value stands, for the message
 * @throws AppError invalid_input naming the limit that is above what the configuration allows
 */
export function requireWithinSettings(
  limits: EndpointLimits,
  settings: LimitSettings,
  root = 'body.limits',
): void {
  for (const [name, { setting }] of ENTRIES) {
    const ceiling = settings[setting];
    const value = limits[name];
    if (value === undefined || ceiling === undefined || value <= ceiling) continue;
    throw new AppError(
      'invalid_input',
      `${root}.${name}: must be at most ${ceiling}; an operator can raise that (${setting})`,
    );
  }
}

/**
 * What is in force on this gateway: the lower of the endpoint's limit and the gateway's configuration, which may differ
 * from that of the management API, or have changed since the limit was set.
 */
export function limitsInForce(limits: EndpointLimits | null, settings: LimitSettings): LimitsInForce {
  const least = (name: LimitName, setting: number) => Math.min(limits?.[name] ?? setting, setting);
  const cpu = Math.min(limits?.cpu_percent ?? Infinity, settings.HANDLER_CPU_PERCENT ?? Infinity);
  return {
    memory_mb: least('memory_mb', settings.HANDLER_MEMORY_MB),
    processes: least('processes', settings.HANDLER_PROCESSES),
    open_files: least('open_files', settings.HANDLER_OPEN_FILES),
    timeout_ms: least('timeout_ms', settings.REQUEST_TIMEOUT_MS),
    concurrent_requests: least('concurrent_requests', settings.HANDLER_CONCURRENT_REQUESTS),
    ...(cpu !== Infinity && { cpu_percent: cpu }),
  };
}

/** Of limits that are above what a gateway allows, their names. */
export function limitsAbove(limits: EndpointLimits | null, inForce: LimitsInForce): string[] {
  return ENTRIES.flatMap(([name]) => ((limits?.[name] ?? 0) > (inForce[name] ?? Infinity) ? [name] : []));
}
