/** Objects by the names that people know them by: what the command line asks instead of reading lists. */
import { Type } from '@sinclair/typebox';
import { AppError } from '../../errors.js';
import { isObjectId, NAMED_KINDS, type NamedKind } from '../../model/object-name.js';
import type { Permission } from '../../model/permission.js';
import { type NamedObject, namesLike, objectsNamed } from '../../store/names.js';
import { nearestOf } from '../../util/nearest.js';
import { requirePermission } from '../access/principal.js';
import { defineRoute } from '../route/route.js';
import { Id, oneOf, optional } from '../route/schemas.js';

const Query = Type.Object({
  kind: oneOf(NAMED_KINDS),
  name: Type.String({
    format: 'line',
    minLength: 1,
    maxLength: 2_400,
    description:
      'Of an endpoint HOST/NAME, HOST/COLLECTION/NAME or METHOD HOST/ROUTE, of a collection HOST/NAME, of a domain ' +
      'its host, of a service its name; or an id',
  }),
});

const Named = {
  id: Id,
  name: Type.String({ description: 'HOST/COLLECTION/NAME of an endpoint in a collection' }),
  ...optional({
    method: Type.String({ description: 'Of an endpoint' }),
    route: Type.String({ description: 'Of an endpoint, with the base path of its collection' }),
  }),
};
const ResolvedName = Type.Object({ kind: oneOf(NAMED_KINDS), ...Named }, { title: 'ResolvedName' });

/** The permission with which objects of a kind are listed. */
const PERMISSION: Readonly<Record<NamedKind, Permission>> = {
  endpoint: 'endpoints:read',
  collection: 'collections:read',
  domain: 'domains:read',
  service: 'services:read',
};

export const nameRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/resolve',
    permission: 'authenticated',
    summary: 'Find an object by its name; needs the permission with which objects of its kind are listed',
    tag: 'System',
    query: Query,
    data: ResolvedName,
    errors: ['ambiguous_name'],
    handle: async ({ query: { kind, name }, scope, principal }, { store }) => {
      requirePermission(principal, PERMISSION[kind]);
      const matches = await objectsNamed(store, kind, name, scope);
      const [first] = matches;
      if (first && matches.length === 1) return { kind, ...first };
      if (first) throw ambiguous(kind, name, matches);
      throw unknown(kind, name, isObjectId(name) ? [] : await namesLike(store, kind, name, scope));
    },
  }),
];

function ambiguous(kind: NamedKind, name: string, matches: readonly NamedObject[]): AppError {
  const list = matches.map((one) => `${shown(one)} (${one.id})`).join(', ');
  const unique = kind === 'endpoint' ? 'method and route, or the id,' : 'id';
  const message = `${name} can be several ${kind}s: ${list}. Give the ${unique} of one.`;
  return new AppError('ambiguous_name', message, { details: { ids: matches.map(({ id }) => id) } });
}

function unknown(kind: NamedKind, name: string, like: readonly NamedObject[]): AppError {
  const names = like.flatMap((one) => (one.method === undefined ? [one.name] : [one.name, routeOf(one)]));
  const nearest = nearestOf(name, names);
  if (nearest.length === 0) return new AppError('not_found', `There is no ${kind} ${name}`);
  return new AppError('not_found', `There is no ${kind} ${name}. Was it ${nearest.join(', or ')}?`);
}

/** A name that tells endpoints of the same name apart. */
function shown(one: NamedObject): string {
  return one.method === undefined ? one.name : routeOf(one);
}

function routeOf({ name, method, route }: NamedObject): string {
  return `${method} ${name.split('/', 1)[0]}${route}`;
}
