/** What lists for people show of endpoints: little of each, but how they do. */
import { Type } from '@sinclair/typebox';
import { ENDPOINT_METHODS } from '../../model/endpoint-method.js';
import { listBriefEndpoints } from '../../store/endpoint-overview.js';
import { presenter } from '../response/present.js';
import { listOptions, PageQuery, pageReply } from '../route/paging.js';
import { defineRoute } from '../route/route.js';
import { Id, nullable, oneOf } from '../route/schemas.js';

const BriefEndpoint = Type.Object(
  {
    id: Id,
    name: Type.String(),
    method: oneOf(ENDPOINT_METHODS),
    route: Type.String({ description: 'With the base path of the collection' }),
    domain: Type.String(),
    collection_id: nullable(Id),
    collection: nullable(Type.String({ description: 'Its name' })),
    enabled: Type.Boolean(),
    status: oneOf(['created', 'compiled', 'running', 'stopped', 'error']),
    running: Type.Boolean({ description: 'A live gateway serves it now, whatever its newest code does' }),
    asleep: Type.Boolean({ description: 'Runs, but without a process until the next request' }),
    requests: Type.Integer({ description: 'Finished in the last hour' }),
    serving_requests: Type.Integer({ description: 'Those of the versions that are to serve now' }),
    errors: Type.Integer({ description: 'Of `serving_requests`, with a status of 500 or more' }),
  },
  { title: 'BriefEndpoint' },
);
const present = presenter(BriefEndpoint);

export const overviewRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/overview/endpoints',
    permission: 'endpoints:read',
    summary: 'List endpoints in brief, by host, collection and route, with their requests of the last hour',
    tag: 'Endpoints',
    query: Type.Object({
      ...PageQuery,
      domain: Type.Optional(Type.String({ maxLength: 255, description: 'Only of this host' })),
      failing: Type.Optional(
        Type.Boolean({
          description:
            'Only those that do not serve because of an error, or have answered with one; the worst first',
        }),
      ),
    }),
    data: Type.Array(BriefEndpoint),
    handle: async (request, { store }) => {
      const { domain, failing } = request.query;
      const filter = { domain: domain?.toLowerCase(), failing };
      const page = await listBriefEndpoints(store, filter, listOptions(request, 100));
      return pageReply(request.raw, page, page.rows, present);
    },
  }),
];
