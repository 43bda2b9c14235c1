/**
 * What a folder of files can say of an installation: whole objects, which refer to each other by natural keys, never by
 * ids. A change of an installation is a list of objects as they are and as they should be.
 */
import type { Dependencies } from '../model/crates.js';
import type { EndpointLimits } from '../model/endpoint-limits.js';
import type { EndpointMethod } from '../model/endpoint-method.js';
import type { Policies } from '../model/policies/policies.js';
import type { ServiceType } from '../model/service-configs.js';
import type { Edition, FileRef, FileRefs } from '../model/source-files.js';

interface Owned {
  /** The stack that has made it, and alone may remove it; null: nobody's. */
  readonly stack: string | null;
}

/** Values by name. */
export type VariableValues = Readonly<Record<string, string>>;

/** Its key: `host`. */
export interface DomainObject extends Owned {
  readonly kind: 'domain';
  readonly host: string;
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
  readonly policies: Policies | null;
  readonly variables: VariableValues;
}

/** Its key: `host` and `name`. */
export interface CollectionObject extends Owned {
  readonly kind: 'collection';
  readonly host: string;
  readonly name: string;
  readonly description: string | null;
  readonly base_path: string | null;
  readonly enabled: boolean;
  readonly policies: Policies | null;
  readonly variables: VariableValues;
}

/** A request that is sent to the handler again and again. */
export interface ScheduleObject {
  readonly cron: string;
  readonly timezone: string;
  readonly enabled: boolean;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Base64; null: none. */
  readonly body: string | null;
}

/** Its key: `host`, `method` and `route`. */
export interface EndpointObject extends Owned {
  readonly kind: 'endpoint';
  /** Or `*`. */
  readonly host: string;
  readonly method: EndpointMethod;
  /** Base path of the collection and path, joined. Of the key its meaning counts, not the names of its parameters. */
  readonly route: string;
  /** The path as the API takes it: below the base path of the collection, or the whole route. */
  readonly path: string;
  readonly name: string;
  /** Name of a collection of the host. */
  readonly collection: string | null;
  /** The host of the domain of that collection: `host`, unless that is `*`. */
  readonly collection_host: string | null;
  readonly description: string | null;
  readonly enabled: boolean;
  readonly code: string | null;
  /** Null: 2021. */
  readonly edition: Edition | null;
  /** The path of the code among the files; null: `handler.rs`. */
  readonly entry: string | null;
  /** The files beside the code; null: none. */
  readonly files: FileRefs | null;
  readonly dependencies: Dependencies | null;
  /** The Cargo.lock of its author; null: none. */
  readonly lock: FileRef | null;
  readonly limits: EndpointLimits | null;
  readonly policies: Policies | null;
  readonly variables: VariableValues;
  /** Names of services by the `pool_id` that the handler knows them by. */
  readonly bindings: Readonly<Record<string, string>>;
  readonly schedules: readonly ScheduleObject[];
  /**
   * Whether its newest code should serve, as it is here. `other`: something else does, an older version or several at
   * a time; no change leads to that.
   */
  readonly running: boolean | 'other';
}

/** Its key: `name`. */
export interface ServiceObject extends Owned {
  readonly kind: 'service';
  readonly name: string;
  readonly service_type: ServiceType;
  /**
   * Settings of the type. A secret is `{"secret": NAME}`, or `{"stored": true}`: the value that is stored, which no
   * file and no plan has.
   */
  readonly config: Readonly<Record<string, unknown>>;
  readonly enabled: boolean;
  readonly domains: readonly string[];
  readonly active: boolean;
}

export type InstallationObject = DomainObject | CollectionObject | EndpointObject | ServiceObject;

/** A field that differs. `path`: the members that lead to it, joined by dots. */
export interface FieldChange {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** One object as it is and as it should be. Of a new one `before` is null, of one to be removed `after`. */
export interface ObjectChange {
  readonly action: 'create' | 'update' | 'delete';
  /** Id of the row. A new object gets one when it is applied, and has null before that. */
  readonly id: string | null;
  readonly before: InstallationObject | null;
  readonly after: InstallationObject | null;
  readonly fields: readonly FieldChange[];
}

/** What an apply does. */
export interface Plan {
  readonly stack: string;
  /** sha256 of all changes, hexadecimal: equal for equal changes of equal objects. */
  readonly hash: string;
  /** Changes in the order of writing: services, domains, collections, endpoints; then removals, the other way. */
  readonly changes: readonly ObjectChange[];
  readonly warnings: readonly string[];
}
