/** Where `$ref`, `$id` and `$anchor` lead. Nothing is fetched. */

import type { JsonObject } from '../../util/json-object.js';
import { quoted, type SchemaPath, SchemaProblem } from './schema-problem.js';

/** A `$ref`. */
interface Use {
  /** The schema that has it. */
  readonly from: number;
  readonly target: string;
  readonly place: SchemaPath;
  /** URL of the resource that it is in. */
  readonly base: string;
}

/** A place, and those within it by their keys. */
interface Location {
  index?: number;
  readonly within: Map<string, Location>;
}

const COMPONENTS = '#/components/schemas/';

export class SchemaReferences {
  readonly uses: Use[] = [];
  /** All schemas by their places. */
  readonly #places: Location = { within: new Map() };
  /** Places of resources by their URLs. */
  readonly #resources = new Map<string, SchemaPath>();
  readonly #anchors = new Map<string, number>();
  readonly #components = new Map<string, SchemaPath>();

  /** A schema that stands for itself. @returns the URL of the resource */
  root(place: SchemaPath, component?: string): string {
    const url = `edge://root-${this.#resources.size}/`;
    this.#resources.set(url, place);
    if (component !== undefined) this.#components.set(component, place);
    return url;
  }

  /** @returns the URL of the resource that its subschemas are in. @throws SchemaProblem */
  add(index: number, place: SchemaPath, outer: string, schema: JsonObject = {}): string {
    let location = this.#places;
    for (const key of place) {
      const next = location.within.get(key) ?? { within: new Map() };
      location.within.set(key, next);
      location = next;
    }
    location.index = index;
    const { $id, $anchor, $dynamicAnchor } = schema;
    let base = outer;
    if ($id !== undefined) {
      if (typeof $id !== 'string' || !URL.canParse($id, outer) || /#./.test($id))
        throw new SchemaProblem([...place, '$id'], 'must be a URL without a fragment');
      base = withoutFragment(new URL($id, outer).href);
      if (this.#resources.has(base) && base !== outer)
        throw new SchemaProblem([...place, '$id'], `${quoted($id)} is the $id of another schema, too`);
      this.#resources.set(base, place);
    }
    for (const [keyword, name] of Object.entries({ $anchor, $dynamicAnchor })) {
      if (name === undefined) continue;
      if (typeof name !== 'string' || !/^[A-Za-z_][-A-Za-z0-9._]*$/.test(name))
        throw new SchemaProblem([...place, keyword], 'must be a name');
      this.#anchors.set(`${base}#${name}`, index);
    }
    return base;
  }

  /** @throws SchemaProblem when it leads nowhere, or out of the policy */
  resolve(target: string, base: string, place: SchemaPath): number {
    const shown = quoted(target);
    const [, name, rest = ''] = /^([^/]*)(\/.*)?$/s.exec(target.slice(COMPONENTS.length)) ?? [];
    if (target.startsWith(COMPONENTS) && name !== undefined) {
      const component = this.#components.get(unescaped(name, place));
      if (component) return this.#at(component, rest, shown, place);
    }
    if (!URL.canParse(target, base)) throw new SchemaProblem(place, `${shown} is not a reference`);
    const url = new URL(target, base);
    const resource = this.#resources.get(withoutFragment(url.href));
    const fragment = url.hash.slice(1);
    if (!resource && !url.href.startsWith('edge:'))
      throw new SchemaProblem(place, `${shown} leads out of the policy, and nothing is fetched`);
    if (!resource) throw new SchemaProblem(place, `${shown} leads nowhere`);
    if (fragment === '' || fragment.startsWith('/')) return this.#at(resource, fragment, shown, place);
    const anchor = this.#anchors.get(`${withoutFragment(url.href)}#${unescaped(fragment, place)}`);
    if (anchor === undefined) throw new SchemaProblem(place, `${shown} leads nowhere`);
    return anchor;
  }

  #at(root: SchemaPath, pointer: string, shown: string, place: SchemaPath): number {
    const keys = pointer
      .split('/')
      .slice(1)
      .map((key) => unescaped(key, place));
    let location: Location | undefined = this.#places;
    for (const key of [...root, ...keys]) location = location?.within.get(key);
    if (location?.index === undefined) throw new SchemaProblem(place, `${shown} leads to no schema`);
    return location.index;
  }
}

function unescaped(key: string, place: SchemaPath): string {
  try {
    return decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    throw new SchemaProblem(place, `${quoted(key)} is not percent-encoded UTF-8`);
  }
}

function withoutFragment(url: string): string {
  return url.split('#', 1)[0] ?? '';
}
