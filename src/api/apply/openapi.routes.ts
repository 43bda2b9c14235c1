/** Endpoints as OpenAPI documents. */
import { AppError } from '../../errors.js';
import { ownerOfActor } from '../../model/owner.js';
import type { Permission } from '../../model/permission.js';
import { findDomainOfHost } from '../../store/domains.js';
import type { Principal } from '../access/principal.js';
import { Reply } from '../response/reply.js';
import { defineRoute } from '../route/route.js';
import { OpenApiExportQuery, OpenApiExportView } from './apply.schema.js';
import { EXPORT_TURNS } from './export.js';
import { exportedDocuments } from './openapi-export.js';

export const openApiExportRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/export/openapi',
    turns: EXPORT_TURNS,
    permission: 'endpoints:read',
    summary:
      'Write the endpoints of a host as OpenAPI documents, which change nothing when they are imported again',
    tag: 'Apply',
    query: OpenApiExportQuery,
    data: OpenApiExportView,
    errors: ['not_found', 'too_many_imports', 'busy'],
    handle: async ({ query, principal }, deps) => {
      const host = query.domain.toLowerCase();
      const domain = await findDomainOfHost(deps.store, host);
      if (domain) requireVisible(principal, 'domains:read', `The domain ${host}`);
      const reading = { ...deps, owner: ownerOfActor(principal.actor) };
      const { documents, warnings } = await exportedDocuments(reading, host, {
        info: { title: domain?.name ?? host, description: domain?.description ?? null },
        part: query,
      });
      if (documents.some(({ collection }) => collection))
        requireVisible(principal, 'collections:read', `The collections of ${host}`);
      return new Reply(200, { documents }, {}, warnings);
    },
  }),
];

/** Their documents show these. @throws AppError forbidden */
function requireVisible({ permissions }: Principal, permission: Permission, what: string): void {
  if (permissions.has(permission)) return;
  throw new AppError('forbidden', `${what}: the permission ${permission} is missing`, {
    details: { permission },
  });
}
