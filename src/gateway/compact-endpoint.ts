/**
 * Rows of endpoints in little memory: a gateway keeps all of them, and there may be very many that nobody calls. What
 * they have in common with others is in memory once, and what can be made of the rest is made when it is asked for.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EndpointLimits } from '../model/endpoint-limits.js';
import type { DeployedTarget, DesiredDeployment, RoutedEndpoint, StickyBy } from '../store/endpoint-runs.js';

/** So many values are kept to be shared, whose texts have so many characters; with more, they begin anew. */
const MAX_SHARED = 10_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;

/** A row, with the JSON of the policy `validate` beside the others. */
interface ReadEndpoint extends RoutedEndpoint {
  readonly validate: string | null;
}

export interface KnownEndpoint extends ReadEndpoint {
  /** Leaves null in place of `validate`, of which only what is in force is kept, in another form. */
  forgetValidate(): void;
}

/** The same row, without what a driver left in it. */
export function compactEndpoint(row: ReadEndpoint): KnownEndpoint {
  return new CompactEndpoint(row);
}

/** Whether requests are routed to the same, under the same limits; policies are not compared. */
export function sameRouting(left: RoutedEndpoint, right: RoutedEndpoint): boolean {
  return (
    left.domain === right.domain &&
    left.method === right.method &&
    left.route === right.route &&
    left.routed === right.routed &&
    isDeepStrictEqual(left.limits, right.limits)
  );
}

/** What many endpoints have in common. */
interface Common {
  readonly domain: string;
  readonly method: string;
  readonly routed: boolean;
  readonly limits: EndpointLimits | null;
  readonly domain_policies: string | null;
  readonly collection_policies: string | null;
  readonly own_policies: string | null;
  readonly domain_id: string | null;
  readonly collection_id: string | null;
  readonly stopped: boolean;
  readonly failed: boolean;
}

class CompactEndpoint implements KnownEndpoint {
  readonly id: string;
  readonly version: number;
  readonly route: string;
  readonly environment: string | null;
  readonly deployment: DesiredDeployment | null;
  readonly common: Common;
  validate: string | null;

  constructor({ id, version, route, environment, deployment, validate, ...row }: ReadEndpoint) {
    this.id = id;
    this.version = version;
    this.route = route;
    this.environment = environment && texts.share(environment, environment);
    this.deployment = deployment && new CompactDeployment(deployment);
    this.validate = validate;
    const { domain, method, routed, limits, stopped, failed } = row;
    const { own_policies, domain_id, collection_id } = row;
    // Also where all else is different: they may be large, and many endpoints have the same.
    const domain_policies = row.domain_policies && texts.share(row.domain_policies, row.domain_policies);
    const collection_policies =
      row.collection_policies && texts.share(row.collection_policies, row.collection_policies);
    const common = {
      ...{ domain, method, routed, limits, stopped, failed },
      ...{ domain_policies, collection_policies, own_policies, domain_id, collection_id },
    };
    this.common = commons.share(JSON.stringify(common), common);
  }

  forgetValidate(): void {
    this.validate = null;
  }

  get domain(): string {
    return this.common.domain;
  }

  get method(): string {
    return this.common.method;
  }

  get routed(): boolean {
    return this.common.routed;
  }

  get limits(): EndpointLimits | null {
    return this.common.limits;
  }

  get domain_policies(): string | null {
    return this.common.domain_policies;
  }

  get collection_policies(): string | null {
    return this.common.collection_policies;
  }

  get own_policies(): string | null {
    return this.common.own_policies;
  }

  get domain_id(): string | null {
    return this.common.domain_id;
  }

  get collection_id(): string | null {
    return this.common.collection_id;
  }

  get stopped(): boolean {
    return this.common.stopped;
  }

  get failed(): boolean {
    return this.common.failed;
  }
}

class CompactDeployment implements DesiredDeployment {
  readonly id: string;
  readonly sticky: StickyBy | null;
  readonly request_id: string;
  readonly confirmed: boolean;
  /** The version that serves alone, as nearly always; or several. */
  readonly served: number | readonly DeployedTarget[];
  /** The artifact of the version that serves alone; null when several serve. */
  readonly artifact: string | null;

  constructor({ id, targets, sticky, request_id, confirmed }: DesiredDeployment) {
    this.id = id;
    this.sticky = sticky;
    this.request_id = request_id;
    this.confirmed = confirmed;
    const [first, ...others] = targets;
    const only = first?.percent === 100 && others.length === 0 ? first : undefined;
    this.served = only ? only.version : targets;
    this.artifact = only ? texts.share(only.artifact, only.artifact) : null;
  }

  get targets(): readonly DeployedTarget[] {
    const { served, artifact } = this;
    if (typeof served !== 'number' || artifact === null) return served as readonly DeployedTarget[];
    return [{ version: served, percent: 100, artifact }];
  }
}

/** Values that are equal to others, by their texts. */
class SharedValues<T> {
  readonly #known = new Map<string, T>();
  #characters = 0;

  share(text: string, value: T): T {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (this.#known.size >= MAX_SHARED || this.#characters > MAX_CHARACTERS) {
      this.#known.clear();
      this.#characters = 0;
    }
    this.#known.set(text, value);
    this.#characters += text.length;
    return value;
  }
}

const commons = new SharedValues<Common>();
const texts = new SharedValues<string>();
