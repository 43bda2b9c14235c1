/** Natural keys of objects: what files know them by, and how people read it. */
import { WITHOUT_DOMAIN } from '../model/owner.js';
import { routeKey } from '../model/route-pattern.js';
import type { InstallationObject } from './objects.js';

export type ObjectKind = InstallationObject['kind'];

/** Plans ask for the key of an object again and again, and that of an endpoint has to read its route. */
const KEYS = new WeakMap<InstallationObject, string>();

/** Equal for objects that are the same one. */
export function keyOf(object: InstallationObject): string {
  const known = KEYS.get(object);
  if (known !== undefined) return known;
  const key = newKeyOf(object);
  KEYS.set(object, key);
  return key;
}

function newKeyOf(object: InstallationObject): string {
  switch (object.kind) {
    case 'domain':
      return domainKey(object.host);
    case 'collection':
      return collectionKey(object.host, object.name);
    case 'endpoint':
      return endpointKey(object.host, object.method, object.route);
    case 'service':
      return serviceKey(object.name);
  }
}

export function domainKey(host: string): string {
  return JSON.stringify(['domain', host]);
}

/** Who takes turns for a host among objects, by their keys: without a domain, all such hosts do together. */
export function ownerAmong(objects: Pick<ReadonlyMap<string, unknown>, 'has'>, host: string): string {
  return objects.has(domainKey(host)) ? host : WITHOUT_DOMAIN;
}

export function collectionKey(host: string, name: string): string {
  return JSON.stringify(['collection', host, name]);
}

/** Routes that match the same requests are the same. */
export function endpointKey(host: string, method: string, route: string): string {
  return JSON.stringify(['endpoint', host, method, routeKey(route)]);
}

export function serviceKey(name: string): string {
  return JSON.stringify(['service', name]);
}

/** The key for people: `GET api.example.com/pets/{id}`, `api.example.com/shop`. */
export function nameOf(object: InstallationObject): string {
  switch (object.kind) {
    case 'domain':
      return object.host;
    case 'collection':
      return `${object.host}/${object.name}`;
    case 'endpoint':
      return `${object.method} ${object.host}${object.route}`;
    case 'service':
      return object.name;
  }
}

/** The same with the kind, for messages. */
export function titleOf(object: InstallationObject): string {
  return `${object.kind} "${nameOf(object)}"`;
}
