/** The audit: who changed what, and what was refused. */
import { Type } from '@sinclair/typebox';
import { type AuditEntry, listAudit } from '../../store/audit.js';
import { idsIn, type NamedInAudit, namesInAudit } from '../../store/audit-names.js';
import { TimeSpan, timeSpan } from '../request/time-span.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { nullable, oneOf, optional, Timestamp } from '../route/schemas.js';

const LISTED = 100;
const OUTCOMES = ['changed', 'refused'] as const;
const Members = nullable(
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
);
const text = (description: string) => Type.String({ format: 'line', maxLength: 256, description });

const AuditView = Type.Object(
  {
    id: Type.Integer(),
    at: Timestamp,
    actor: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
    address: Type.String(),
    request_id: Type.String(),
    method: Type.String(),
    action: Type.String({ description: 'The route, or the path where there is none' }),
    outcome: oneOf(OUTCOMES),
    status: Type.Integer(),
    object_kind: nullable(Type.String()),
    object_id: nullable(Type.String()),
    before: Members,
    after: Members,
    names: Type.Record(Type.String(), Type.Object({ kind: Type.String(), name: Type.String() }), {
      description:
        'By id, what the entry has by id and what has a name: as it is now, or as it was last of what is deleted',
    }),
  },
  { title: 'AuditEntry' },
);

export const auditRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/audit',
    permission: 'audit:read',
    isOfInstallation: true,
    summary: 'Read the audit, the newest entries first',
    tag: 'Audit',
    query: Type.Object({
      ...optional({
        actor_id: text('The id of a user or a token'),
        outcome: oneOf(OUTCOMES),
        object_kind: text('Such as `endpoint`'),
        object_id: text('Of what was changed'),
        request_id: text('Of the request'),
        address: text('Of the client'),
        ...TimeSpan,
      }),
      ...PageQuery,
    }),
    data: Type.Array(AuditView),
    handle: async (request, { store }) => {
      const {
        since: _since,
        until: _until,
        limit: _limit,
        cursor: _cursor,
        search: _search,
        ...filter
      } = request.query;
      const { since, until } = timeSpan(request.query);
      const page = await listAudit(store, { ...filter, since, until }, listOptions(request, LISTED));
      const names = await namesInAudit(store, page.rows);
      return pageReply(request.raw, page, page.rows, (entry) => present(entry, names));
    },
  }),
];

function present(entry: AuditEntry, known: ReadonlyMap<string, NamedInAudit>) {
  const names = idsIn(entry).flatMap((id) => {
    const named = known.get(id);
    return named ? [[id, named] as const] : [];
  });
  return { ...entry, at: entry.at.toISOString(), names: Object.fromEntries(names) };
}
