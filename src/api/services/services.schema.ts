/** Services as the contract shows them. */
import { Type } from '@sinclair/typebox';
import { SERVICE_CONFIGS, SERVICE_TYPES, type StoredConfig } from '../../model/service-configs.js';
import { SERVICE_STATES } from '../../store/service-activity.js';
import { Enabled, Hosts, Id, Name, Owner, oneOf, Timestamp } from '../route/schemas.js';

const ServiceTypeName = oneOf(SERVICE_TYPES);

/** Validated by the handler with the schema of the service type. */
const ConfigInput = Type.Unsafe<object>({
  type: 'object',
  description: `Settings of the service type; see ${Object.values(SERVICE_CONFIGS)
    .map(({ title }) => title)
    .join(', ')}. \`{"secret": NAME}\` stands for a secret of the installation`,
});

export const ServiceView = Type.Object(
  {
    id: Id,
    name: Name,
    service_type: ServiceTypeName,
    config: Type.Unsafe<StoredConfig>({ anyOf: Object.values(SERVICE_CONFIGS) }),
    enabled: Type.Boolean(),
    domains: Hosts,
    stack: Owner,
    active: Type.Boolean({ description: 'Whether it was activated' }),
    state: oneOf(SERVICE_STATES),
    state_message: Type.Union([Type.String(), Type.Null()], {
      description: 'What it is connected to, or why it is not; of the actor host where it stands worst',
    }),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Service' },
);

export const CreateService = Type.Object({
  name: Name,
  service_type: ServiceTypeName,
  config: ConfigInput,
  enabled: Type.Optional(Enabled),
  domains: Type.Optional(Hosts),
  stack: Type.Optional(Owner),
});

export const UpdateService = Type.Object({
  name: Type.Optional(Name),
  config: Type.Optional(ConfigInput),
  enabled: Type.Optional(Type.Boolean()),
  domains: Type.Optional(Hosts),
});

export const ServiceActivity = Type.Object(
  {
    id: Id,
    name: Name,
    service_type: ServiceTypeName,
    active: Type.Boolean(),
    message: Type.String(),
  },
  { title: 'ServiceActivity' },
);

export const ConnectionTestSchema = Type.Union(
  [
    Type.Object({ connected: Type.Literal(true), latency_ms: Type.Integer(), message: Type.String() }),
    Type.Object({ connected: Type.Literal(false), error: Type.String() }),
  ],
  { title: 'ConnectionTest' },
);
