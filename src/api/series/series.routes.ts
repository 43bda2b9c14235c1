/** Figures over time: what became of requests, and what handlers used. */
import { readSeries } from '../../store/figures.js';
import { defineRoute } from '../route/route.js';
import { presentSeries, Series, SeriesQuery, seriesRequest } from './series.schema.js';

export const seriesRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/series',
    permission: 'statistics:read',
    summary: 'Figures over time of an endpoint, of a domain, or of all endpoints; the last hour by minutes',
    tag: 'Figures',
    query: SeriesQuery,
    data: Series,
    handle: async (request, deps) => {
      const filter = { ...seriesRequest(request.query), scope: request.scope };
      return presentSeries(filter, await readSeries(deps.store, filter));
    },
  }),
];
