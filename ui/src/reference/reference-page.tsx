/** The description of the gateway's API, and of the endpoints of each domain. */
import { useLocation } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { SelectField } from '../base/controls.js';
import { saveDocument } from '../base/download.js';
import type { PageProps } from '../base/lazy.js';
import { Empty, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { basePathOf, objectOf, textOf } from './document.js';
import { Operations } from './operations.js';

export function ReferencePage({ params }: PageProps) {
  const host = params['host'];
  const [, navigate] = useLocation();
  const domains = useQuery('GET /api/domains', may('domains:read') && may('endpoints:read') ? {} : undefined);
  const hosts = [
    ...new Set([
      ...(domains.data ?? []).map((domain) => domain.host),
      ...(me.value?.domains === null ? ['*'] : []),
      ...(host === undefined ? [] : [host]),
    ]),
  ];
  return (
    <Page
      title={host === undefined ? 'API of the gateway' : `API of ${host}`}
      heading="API"
      actions={
        <SelectField
          label="API of"
          options={[
            { value: '', label: 'The gateway itself' },
            ...hosts.map((one) => ({ value: one, label: one === '*' ? 'Endpoints of any host' : one })),
          ]}
          value={host ?? ''}
          onChange={(chosen) => navigate(chosen === '' ? '/ui/api' : `/ui/api/${encodeURIComponent(chosen)}`)}
        />
      }
    >
      {host === undefined ? <GatewayReference /> : <HostReference key={host} host={host} />}
    </Page>
  );
}

function GatewayReference() {
  const result = useQuery('GET /api/openapi.json', {});
  return (
    <Loaded result={result} lines={8}>
      {(document) => <Reference document={document} file="edge-gateway" destination={{ kind: 'gateway' }} />}
    </Loaded>
  );
}

function HostReference({ host }: { readonly host: string }) {
  const [params, change] = useAddress();
  const result = useQuery('GET /api/export/openapi', { query: { domain: host } });
  return (
    <Loaded result={result} lines={8}>
      {({ documents }) => {
        const at = Math.min(Number(params.get('document') ?? 0) || 0, documents.length - 1);
        const chosen = documents[at];
        if (!chosen)
          return (
            <Empty title="No endpoint of this host has a description">
              <p>Endpoints that are enabled and have code are described here, imported or not.</p>
            </Empty>
          );
        const destination = { kind: 'host' as const, host, base: basePathOf(chosen.document) };
        return (
          <>
            {documents.length > 1 && (
              <div class="filters">
                <SelectField
                  label="Document"
                  options={documents.map(({ document, collection }, index) => ({
                    value: String(index),
                    label:
                      collection?.name ??
                      (textOf(objectOf(document['info'])['title']) || `Document ${index + 1}`),
                  }))}
                  value={String(at)}
                  onChange={(index) => change({ document: index, op: undefined })}
                />
              </div>
            )}
            <Reference key={at} document={chosen.document} file={host} destination={destination} />
          </>
        );
      }}
    </Loaded>
  );
}

type ReferenceProps = Parameters<typeof Operations>[0] & { readonly file: string };

function Reference({ document, file, destination }: ReferenceProps) {
  const info = objectOf(document['info']);
  const description = textOf(info['description']);
  return (
    <>
      <div class="actions">
        <p>
          <strong>{textOf(info['title'])}</strong>{' '}
          <span class="muted">
            {textOf(info['version'])}
            {description !== '' && ` · ${description}`}
          </span>
        </p>
        <button type="button" class="button small" onClick={() => saveDocument(file, document)}>
          Download the document
        </button>
      </div>
      <Operations document={document} destination={destination} />
    </>
  );
}
