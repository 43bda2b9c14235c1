/** The way to a first answer where something serves already, such as the sample of `npm run up`. */
import { useQuery } from '../api/query.js';
import { useOrigin } from '../endpoint/address.js';
import type { BriefEndpoint } from '../generated/routes.js';

/** Most endpoints with which an example is shown: with more of them, one knows where they answer. */
const MOST_ENDPOINTS = 3;

export function LiveExample() {
  const { data = [] } = useQuery('GET /api/overview/endpoints', { query: { limit: MOST_ENDPOINTS + 1 } });
  const live = data.find(({ method, running }) => method === 'GET' && running);
  return live && data.length <= MOST_ENDPOINTS ? <LiveLink endpoint={live} /> : null;
}

function LiveLink({ endpoint: { domain, route } }: { readonly endpoint: BriefEndpoint }) {
  const origin = useOrigin({ domain });
  if (origin === undefined) return null;
  const url = origin + exampleOf(route);
  return (
    <p>
      It is live at{' '}
      <a href={url} target="_blank" rel="noopener noreferrer">
        {url}
      </a>
    </p>
  );
}

/** A path of the route, with something in the place of each parameter; who is greeted is Ada. */
function exampleOf(route: string): string {
  return route.replace(/\{\*?([^}]+)\}/g, (_, name: string) => (name === 'name' ? 'Ada' : '1'));
}
