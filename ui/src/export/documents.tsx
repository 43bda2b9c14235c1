/** The endpoints of a host as OpenAPI documents, to be saved or imported elsewhere. */
import { useQuery } from '../api/query.js';
import { Button } from '../base/controls.js';
import { saveDocument } from '../base/download.js';
import { Loaded } from '../base/notices.js';
import { Visible } from '../base/visible.js';
import type { OpenApiExport } from '../generated/routes.js';

type Document = OpenApiExport['documents'][number];

export function Documents({ domain }: { readonly domain: string }) {
  const result = useQuery('GET /api/export/openapi', { query: { domain } }, { isUnannounced: true });
  return (
    <section class="stack tight" aria-labelledby="documents">
      <h2 id="documents">OpenAPI documents</h2>
      <Loaded result={result} lines={2}>
        {({ documents }) =>
          documents.length === 0 ? (
            <p class="muted">No endpoint of this host has a description.</p>
          ) : (
            <ul class="card details-list">
              {documents.map((document, at) => (
                <li key={at}>
                  <div class="summary">
                    <span class="what">
                      <Visible text={titleOf(document)} isOneLine />
                    </span>
                    <Button
                      isSmall
                      label={`Download ${titleOf(document)}`}
                      onClick={() => saveDocument(nameOf(domain, document), document.document)}
                    >
                      Download
                    </Button>
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}

function nameOf(domain: string, document: Document): string {
  const title = titleOf(document);
  return title === domain ? domain : `${domain}-${title}`;
}

function titleOf({ collection, document }: Document): string {
  const info = document['info'];
  const title = typeof info === 'object' && info !== null && 'title' in info ? info.title : undefined;
  return collection?.name ?? (typeof title === 'string' && title !== '' ? title : 'Document');
}
