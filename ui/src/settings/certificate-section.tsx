/** The certificate of a domain, for TLS. */
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import { Loaded } from '../base/notices.js';
import { Ago, At } from '../base/text.js';
import { done, failed } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { Certificate, Domain } from '../generated/routes.js';
import { Section } from './section.js';

export function CertificateSection({ domain }: { readonly domain: Domain }) {
  const has = domain.certificate_expires_at !== null;
  const mayEdit = may('domains:write');
  return (
    <Section
      title="Certificate"
      hint="For TLS. Clients that ask for this host get it; its key is stored encrypted, and never shown."
      actions={
        mayEdit && (
          <Button onClick={() => askForCertificate(domain)}>{has ? 'Replace' : 'Add a certificate'}</Button>
        )
      }
    >
      {has ? (
        <Shown domain={domain} />
      ) : (
        <p class="muted">No certificate: this host is not served over TLS.</p>
      )}
      {domain.certificate_order && <Ordered domain={domain} order={domain.certificate_order} />}
      {has && mayEdit && (
        <div>
          <Button look="plain" onClick={() => askToDelete(domain)}>
            Delete the certificate
          </Button>
        </div>
      )}
    </Section>
  );
}

/** How the order of one by ACME goes, where it is not simply there. */
function Ordered({
  domain: { id },
  order,
}: {
  readonly domain: Domain;
  readonly order: NonNullable<Domain['certificate_order']>;
}) {
  const { state, error, next_try_at } = order;
  if (state === 'queued' || state === 'ordering') return <p class="muted">One is being ordered by ACME.</p>;
  if (state === 'issued' || error === null) return null;
  const tryNow = async () => {
    try {
      await call('POST /api/domains/{id}/certificate/order', { params: { id } });
      done('It is ordered now');
    } catch (thrown) {
      failed(thrown);
    }
    invalidate('/api/domains');
  };
  return (
    <p>
      It could not be ordered by ACME: <Visible text={error} isOneLine />
      {next_try_at !== null && (
        <>
          {' '}
          It is tried again at <At at={next_try_at} />.
        </>
      )}{' '}
      {may('domains:write') && (
        <Button look="plain" onClick={() => void tryNow()}>
          Try now
        </Button>
      )}
    </p>
  );
}

function Shown({ domain: { id } }: { readonly domain: Domain }) {
  const result = useQuery('GET /api/domains/{id}/certificate', { params: { id } });
  return <Loaded result={result}>{(certificate) => <Facts certificate={certificate} />}</Loaded>;
}

function Facts({
  certificate: { names, issuer, expires_at, fingerprint },
}: {
  readonly certificate: Certificate;
}) {
  return (
    <dl class="facts">
      <dt>For</dt>
      <dd>
        <Visible text={names.join(', ')} isOneLine />
      </dd>
      <dt>Issued by</dt>
      <dd>
        <Visible text={issuer} isOneLine />
      </dd>
      <dt>Expires</dt>
      <dd>
        <At at={expires_at} /> (<Ago at={expires_at} />)
      </dd>
      <dt>SHA-256</dt>
      <dd>
        <code>{fingerprint}</code>
      </dd>
    </dl>
  );
}

function askForCertificate({ id, host }: Domain): void {
  ask({
    title: `Certificate of ${host}`,
    action: 'Save',
    fields: {
      certificate: {
        label: 'Certificate',
        hint: 'PEM: that of the host first, then those that lead to one that clients know.',
        as: 'lines',
        isAwaited: true,
      },
      private_key: { label: 'Private key', as: 'concealed', isAwaited: true },
    },
    async run(body) {
      const { warnings } = await call('PUT /api/domains/{id}/certificate', { params: { id }, body });
      invalidate('/api/domains');
      done(warnings[0] ?? 'The certificate is in force');
    },
  });
}

function askToDelete({ id, host }: Domain): void {
  ask({
    title: 'Delete the certificate',
    action: 'Delete',
    isDangerous: true,
    text: `New connections to ${host} with TLS fail from then on.`,
    async run() {
      await call('DELETE /api/domains/{id}/certificate', { params: { id } });
      invalidate('/api/domains');
      done('The certificate is deleted');
    },
  });
}
