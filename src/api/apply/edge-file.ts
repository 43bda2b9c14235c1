/**
 * The format of `edge.yaml`: what a folder can say of an installation. Its members are those of the API's routes;
 * objects name each other by hosts, routes and names instead of ids.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { DEPENDENCIES_SCHEMA } from '../../model/crates.js';
import { FORMAT_KEYWORDS } from '../../model/formats.js';
import { SERVICE_CONFIGS, SERVICE_TYPES, secretMaps, secretSettings } from '../../model/service-configs.js';
import { CreateBinding } from '../bindings/bindings.schema.js';
import { CreateCollection } from '../collections/collections.schema.js';
import { CreateDomain } from '../domains/domains.schema.js';
import { CreateEndpoint } from '../endpoints/endpoints.schema.js';
import { NewSchedule } from '../jobs/jobs.schema.js';
import { nullable, optional, StackName } from '../route/schemas.js';
import { CreateService } from '../services/services.schema.js';
import { SetVariables } from '../variables/variables.schema.js';

const MAX_OBJECTS = 100_000;

/** The stack of an object, where it is not that of the folder. */
const FileOwner = Type.Optional(
  nullable(
    Type.String({
      ...StackName,
      description:
        'Only of an object that does not belong to the stack of the folder: to which it belongs, null for none. It is ' +
        'made where it is missing, and never changed',
    }),
  ),
);

const {
  name: endpointName,
  path: endpointPath,
  domain: endpointHost,
  collection_id: _collection,
  code: _code,
  entry: _entry,
  files: _files,
  lock: _lock,
  stack: _endpointOwner,
  ...endpointSettings
} = CreateEndpoint.properties;
const { domain_id: _domain, stack: _collectionOwner, ...collectionSettings } = CreateCollection.properties;
/** The policies of three kinds of objects; with a title the published schema has them once. */
const FilePolicies: typeof CreateDomain.properties.policies = {
  ...CreateDomain.properties.policies,
  title: 'Policies',
};
const Schedule = closed({ ...NewSchedule.properties });
const FileVariables = Type.Unsafe<Record<string, string>>(SetVariables);

export const FileDomain = closed({
  host: CreateDomain.properties.host,
  stack: FileOwner,
  ...optional({ name: described(CreateDomain.properties.name, 'Display name; the host unless given') }),
  description: CreateDomain.properties.description,
  enabled: CreateDomain.properties.enabled,
  policies: FilePolicies,
  ...optional({ variables: FileVariables }),
});

export const FileCollection = closed({
  host: described(CreateDomain.properties.host, 'Of its domain'),
  stack: FileOwner,
  ...collectionSettings,
  policies: FilePolicies,
  ...optional({ variables: FileVariables }),
});

export const FileEndpoint = closed({
  host: endpointHost,
  ...endpointSettings,
  policies: FilePolicies,
  stack: FileOwner,
  ...optional({
    route: described(endpointPath, 'Of an endpoint without a collection'),
    collection: described(collectionSettings.name, 'Name of a collection of the host'),
    collection_host: described(
      CreateDomain.properties.host,
      'The host of the domain of that collection, when `host` is "*"',
    ),
    path: described(endpointPath, 'Below the base path of the collection'),
    name: described(endpointName, 'Display name; method and route unless given'),
    handler: Type.String({
      minLength: 1,
      maxLength: 1024,
      description: "The handler's source: a path in the folder, such as src/hello.rs",
    }),
    root: Type.String({
      format: 'file-path',
      description:
        'The folder that paths of its source are relative to, and that the source does not leave; the whole folder ' +
        'unless given',
    }),
    include: Type.Array(Type.String({ format: 'file-pattern', minLength: 1, maxLength: 1024 }), {
      maxItems: 10_000,
      description:
        'Files of its source besides those that `mod` and `include_str!` name: paths in the root, in which * is a ' +
        'part of a name and ** any folders',
    }),
    lock: Type.String({
      format: 'file-path',
      description:
        'The Cargo.lock to which its crates are held: a path in the folder, such as Cargo.lock. Of an endpoint with the ' +
        'crates of its Cargo.toml, that of the package, unless given',
    }),
    dependencies: described(
      endpointSettings.dependencies,
      `${DEPENDENCIES_SCHEMA.description}; those of its Cargo.toml unless given`,
    ),
    variables: FileVariables,
    bindings: Type.Unsafe<Record<string, string>>({
      type: 'object',
      description: 'Names of services by the `pool_id` that the handler knows them by',
      propertyNames: CreateBinding.properties.pool_id,
      additionalProperties: CreateService.properties.name,
      maxProperties: 1_000,
    }),
    schedules: Type.Array(Schedule, { maxItems: 100 }),
    running: Type.Unsafe<boolean | 'other'>({
      enum: [true, false, 'other'],
      description:
        'Whether its newest code should serve; true unless given, if it has a handler. `other`: what serves stays',
    }),
  }),
});

export const FileService = closed({
  name: CreateService.properties.name,
  service_type: CreateService.properties.service_type,
  config: CreateService.properties.config,
  stack: FileOwner,
  enabled: CreateService.properties.enabled,
  domains: CreateService.properties.domains,
  ...optional({
    active: Type.Boolean({ description: 'Whether it is activated; true unless given, if it is enabled' }),
  }),
});

/** The lists of objects, by their members. */
export const FILE_LISTS = {
  domains: FileDomain,
  collections: FileCollection,
  endpoints: FileEndpoint,
  services: FileService,
} as const;
export type FileList = keyof typeof FILE_LISTS;

/** Each of them is checked by itself. */
const Objects = Type.Array(Type.Unknown(), { maxItems: MAX_OBJECTS });

/** What is no list of objects. */
export const FileHead = closed({
  stack: StackName,
  ...optional({
    secrets: Type.Array(Type.String({ format: 'variable-name' }), {
      maxItems: 10_000,
      description: 'Names of secrets of the installation that must be set before',
    }),
    ...{ domains: Objects, collections: Objects, endpoints: Objects, services: Objects },
  }),
});

export type FileDomainInput = Static<typeof FileDomain>;
export type FileCollectionInput = Static<typeof FileCollection>;
export type FileEndpointInput = Static<typeof FileEndpoint>;
export type FileServiceInput = Static<typeof FileService>;

/** The JSON Schema of the format, for editors. */
export function edgeFileSchema(): Record<string, unknown> {
  const lists = Object.fromEntries(
    Object.entries<TObject>({ ...FILE_LISTS, services: FileService }).map(([name, schema]) => [
      name,
      { type: 'array', items: name === 'services' ? withConfigs(schema) : schema },
    ]),
  );
  const definitions: Record<string, unknown> = {};
  const schema = withDefinitions(
    {
      ...FileHead,
      // One of several files need not say it.
      required: [],
      properties: { ...FileHead.properties, ...lists },
    },
    definitions,
  ) as Record<string, unknown>;
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'edge.yaml',
    description: 'An installation of Edge Gateway, or a part of it, as files: docs/APPLY.md',
    ...schema,
    definitions,
  };
}

function closed<P extends TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false });
}

function described<T extends TSchema>(schema: T, description: string): T {
  return { ...schema, description };
}

/** The config of each type, with what may stand for a secret in a file. */
function withConfigs(schema: TObject): object {
  return {
    ...schema,
    allOf: SERVICE_TYPES.map((type) => ({
      if: { properties: { service_type: { const: type } }, required: ['service_type'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { config: configInFile(type) } },
    })),
  };
}

function configInFile(type: (typeof SERVICE_TYPES)[number]): object {
  const { title: _title, ...schema } = SERVICE_CONFIGS[type] as TObject;
  const [secrets, maps] = [secretSettings(type), secretMaps(type)];
  const properties = Object.entries<TSchema>(schema.properties).map(([name, setting]) => {
    if (secrets.has(name)) return [name, { anyOf: [...STANDS_FOR_SECRET, { type: 'null' }] }];
    if (!maps.has(name)) return [name, setting];
    const { propertyNames, maxProperties } = setting;
    return [
      name,
      { type: 'object', propertyNames, maxProperties, additionalProperties: { anyOf: STANDS_FOR_SECRET } },
    ];
  });
  const required = (schema.required ?? []).filter(
    (name) => schema.properties[name]?.['default'] === undefined,
  );
  return { ...schema, properties: Object.fromEntries(properties), required };
}

const STANDS_FOR_SECRET = [
  {
    type: 'object',
    description: 'A secret of the installation',
    properties: { secret: { type: 'string', format: 'variable-name' } },
    required: ['secret'],
    additionalProperties: false,
  },
  {
    type: 'object',
    description: 'The value that is stored',
    properties: { stored: { const: true } },
    required: ['stored'],
    additionalProperties: false,
  },
] as const;

/** Formats whose keywords accept all that the format accepts: an editor must not complain of a valid file. */
const FOR_EDITORS: ReadonlySet<string> = new Set([
  ...[
    'text',
    'line',
    'hostname-or-any',
    'pool-id',
    'email-address',
    'crate-name',
    'step',
    'status',
    'rate-limit-by',
  ],
  ...['header-name', 'header-value', 'changeable-header', 'feature', 'variable-name'],
]);

/** Our own formats as keywords that editors know; what has a title stands once. */
function withDefinitions(schema: unknown, definitions: Record<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((one) => withDefinitions(one, definitions));
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(
    Object.entries(schema).flatMap(([key, member]) =>
      key.startsWith('x-') ? [] : [[key, withDefinitions(member, definitions)]],
    ),
  );
  const { format, title } = copy;
  const { format: _format, ...others } = copy;
  const known = typeof format === 'string' && FOR_EDITORS.has(format) ? FORMAT_KEYWORDS[format] : undefined;
  const result = known ? { ...known, ...others } : copy;
  if (typeof title !== 'string') return result;
  definitions[title] = result;
  return { $ref: `#/definitions/${title}` };
}
