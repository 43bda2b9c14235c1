/**
 * Limits of an endpoint: those that its author may set, and those that apply. The configuration has a value for each,
 * which is both the default and the maximum: the author is not the operator of the machine.
 */
import type { Config } from '../config.js';
import { AppError } from '../errors.js';

/** A limit of the configuration that an endpoint can lower. */
interface LimitKind {
  /** Default and maximum. */
  readonly setting: keyof Config;
  /** The lowest value with which a handler works. */
  readonly minimum: number;
  readonly maximum: number;
  readonly description: string;
  /** 0 stands for no limit, and so for the highest value. */
  readonly isUnlimitedAt0?: true;
}

const KINDS = {
  memory_mb: {
    setting: 'HANDLER_MEMORY_MB',
    minimum: 16,
    maximum: 1_048_576,
    description: 'Memory of all its processes together, MiB. Beyond it, they are ended',
  },
  processes: {
    setting: 'HANDLER_PROCESSES',
    minimum: 16,
    maximum: 1_000_000,
    description: 'Processes and threads; more cannot be started',
  },
  open_files: {
    setting: 'HANDLER_OPEN_FILES',
    minimum: 32,
    maximum: 1_048_576,
    description: 'Open files and connections of one process; more cannot be opened',
  },
  cpu_percent: {
    setting: 'HANDLER_CPU_PERCENT',
    minimum: 1,
    maximum: 102_400,
    description:
      'CPU time of all its processes, percent of one core, averaged over ten seconds. Beyond it, they are ended',
  },
  timeout_ms: {
    setting: 'REQUEST_TIMEOUT_MS',
    minimum: 1,
    maximum: 3_600_000,
    description:
      'Deadline of one request, of a streamed response until it begins, milliseconds. Beyond it, the answer is 504',
  },
  idle_timeout_ms: {
    setting: 'STREAM_IDLE_TIMEOUT_MS',
    minimum: 1,
    maximum: 3_600_000,
    description:
      'Longest time between two pieces of a streamed response, milliseconds. Beyond it, it is cut off',
  },
  concurrent_requests: {
    setting: 'HANDLER_CONCURRENT_REQUESTS',
    minimum: 1,
    maximum: 65_536,
    description: 'Requests in it at the same time, on each gateway. Beyond it, the answer is 429',
  },
  idle_ms: {
    setting: 'HANDLER_IDLE_MS',
    minimum: 0,
    maximum: 604_800_000,
    description:
      'Time without requests after which its handler is ended, milliseconds; the next request starts it again. 0 is never, the highest value',
    isUnlimitedAt0: true,
  },
} as const satisfies Readonly<Record<string, LimitKind>>;

type LimitName = keyof typeof KINDS;

/** The limits that an author has set; the others are those of the configuration. */
export type EndpointLimits = { readonly [Name in LimitName]?: number } & {
  /** 1: its handler is not ended for want of requests. No setting limits it: 0 unless the author says so. */
  readonly min_instances?: number;
};

/** The limits that apply: all of them, except that CPU time may be unlimited. */
export type LimitsInForce = Required<Omit<EndpointLimits, 'cpu_percent'>> &
  Pick<EndpointLimits, 'cpu_percent'>;

const ENTRIES = Object.entries(KINDS) as readonly [LimitName, LimitKind & { setting: LimitSetting }][];

/** JSON Schema of `EndpointLimits`. */
export const LIMITS_SCHEMA = {
  type: 'object',
  description:
    'Limits of its handler, tighter than those of the configuration. They apply at once: processes are replaced without losing a request.',
  properties: {
    ...Object.fromEntries(
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
    min_instances: {
      type: 'integer',
      minimum: 0,
      maximum: 1,
      description: 'Handlers that are kept without requests: with 1, idle_ms ends none. 0 by default.',
    },
  },
  // A misspelt limit would silently not apply.
  additionalProperties: false,
} as const;

type LimitSetting = (typeof KINDS)[LimitName]['setting'];

/** The settings that limits depend on. */
export type LimitSettings = Pick<Config, LimitSetting>;

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
    if (value === undefined || ceiling === undefined || !isAbove(name, value, ceiling)) continue;
    const never = value === 0 ? ', and 0 is more' : '';
    throw new AppError(
      'invalid_input',
      `${root}.${name}: must be at most ${ceiling}${never}; an operator can raise that (${setting})`,
    );
  }
}

function isAbove(name: LimitName, value: number, ceiling: number): boolean {
  return height(name, value) > height(name, ceiling);
}

function height(name: LimitName, value: number): number {
  const { isUnlimitedAt0 }: LimitKind = KINDS[name];
  return isUnlimitedAt0 && value === 0 ? Infinity : value;
}

/**
 * The limits that apply on this gateway: the lower of the endpoint's limit and the gateway's configuration, which may
 * differ from that of the management API, or have changed since the limit was set.
 */
export function limitsInForce(limits: EndpointLimits | null, settings: LimitSettings): LimitsInForce {
  const least = (name: LimitName, setting: number) => {
    const value = limits?.[name] ?? setting;
    return isAbove(name, value, setting) ? setting : value;
  };
  const cpu = Math.min(limits?.cpu_percent ?? Infinity, settings.HANDLER_CPU_PERCENT ?? Infinity);
  return {
    memory_mb: least('memory_mb', settings.HANDLER_MEMORY_MB),
    processes: least('processes', settings.HANDLER_PROCESSES),
    open_files: least('open_files', settings.HANDLER_OPEN_FILES),
    timeout_ms: least('timeout_ms', settings.REQUEST_TIMEOUT_MS),
    idle_timeout_ms: least('idle_timeout_ms', settings.STREAM_IDLE_TIMEOUT_MS),
    concurrent_requests: least('concurrent_requests', settings.HANDLER_CONCURRENT_REQUESTS),
    idle_ms: least('idle_ms', settings.HANDLER_IDLE_MS),
    min_instances: limits?.min_instances ?? 0,
    ...(cpu !== Infinity && { cpu_percent: cpu }),
  };
}

/** The names of limits that are above those of a gateway. */
export function limitsAbove(limits: EndpointLimits | null, inForce: LimitsInForce): string[] {
  return ENTRIES.flatMap(([name]) => {
    const value = limits?.[name];
    return value !== undefined && isAbove(name, value, inForce[name] ?? Infinity) ? [name] : [];
  });
}

/** Whether its handlers run without requests, too. */
export function isKeptAwake({ idle_ms, min_instances }: LimitsInForce): boolean {
  return min_instances > 0 || idle_ms === 0;
}
