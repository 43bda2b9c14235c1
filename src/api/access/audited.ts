/** What the audit has of a request: the object that it is about, and others that it names. */

import { auditedRow } from '../../store/audit.js';
import type { Database } from '../../store/database.js';
import type { JsonObject } from '../../util/json-object.js';
import { KIND_OF_MEMBER, KIND_OF_SEGMENT } from './references.js';

/** What a request changes. */
export interface AuditTarget {
  readonly kind: string;
  /** Undefined for what it makes. */
  readonly id?: string;
  readonly before?: Readonly<Record<string, unknown>>;
  /** The other objects that the request names. */
  readonly named: Readonly<Record<string, unknown>>;
  /** What else it changes, as its route says; nothing secret. */
  readonly details: Record<string, unknown>;
}

/** The longest name of an object in a query. */
const MAX_HOST = 255;
/** The longest id: keys of objects. */
const MAX_ID = 1_024;

interface Target {
  readonly kind: string;
  /** Undefined for a path that names none. */
  readonly id?: string;
  /** The ids of the objects before it in the path. */
  readonly named: Readonly<Record<string, string>>;
}

/** What a request is about: the last object that its path names. @param path of the route */
export function targetOf(path: string, params: JsonObject): Target {
  const segments = path.split('/').slice(2);
  const inPath = segments.flatMap((segment, at) => {
    const name = /^\{(\w+)(?:\.\.\.)?\}$/.exec(segment)?.[1];
    const kind = kindOf(segments[at - 1] ?? '');
    return name === undefined ? [] : [{ kind, id: String(params[name] ?? '').slice(0, MAX_ID) }];
  });
  const last = inPath.pop() ?? { kind: kindOf(segments[0] ?? '') };
  return { ...last, named: Object.fromEntries(inPath.map(({ kind, id }) => [`${kind}_id`, id])) };
}

/** What a request changes, as it is before that. */
export async function audited(
  store: Database,
  path: string,
  { params, query, details }: { readonly [part in 'params' | 'query' | 'details']: JsonObject },
): Promise<AuditTarget> {
  const { kind, id, named: above } = targetOf(path, params);
  const inQuery = Object.keys(KIND_OF_MEMBER).flatMap((name) => {
    const value = query[name];
    return typeof value === 'string' ? [[name, value.slice(0, MAX_HOST)]] : [];
  });
  const named = { ...above, ...Object.fromEntries(inQuery) };
  if (id === undefined || 'name' in params) return { kind, ...(id !== undefined && { id }), named, details };
  const before = await auditedRow(store, kind, id);
  return { kind, id, ...(before && { before }), named, details };
}

/** The kind of what a segment of a path is about. */
function kindOf(segment: string): string {
  return segment === 'minio' ? 'object' : (KIND_OF_SEGMENT[segment] ?? segment.replace(/s$/, ''));
}
