/** The certificate of a domain, for TLS. */
import { useState } from 'preact/hooks';
import { type ApiError, call } from '../api/client.js';
import { invalidate, toApiError, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Button, TextArea } from '../base/controls.js';
import { Dialog, FormDialog } from '../base/dialog.js';
import { ErrorNotice, Loaded } from '../base/notices.js';
import { isAtOneOf, problemAt } from '../base/problems.js';
import { Ago, At } from '../base/text.js';
import { done, failed } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { Certificate, Domain } from '../generated/routes.js';
import { SecretField } from './secret-field.js';
import { Section } from './section.js';

export function CertificateSection({ domain }: { readonly domain: Domain }) {
  const [open, setOpen] = useState<'set' | 'delete'>();
  const has = domain.certificate_expires_at !== null;
  const mayEdit = may('domains:write');
  const close = () => setOpen(undefined);
  return (
    <Section
      title="Certificate"
      hint="For TLS. Clients that ask for this host get it; its key is stored encrypted, and never shown."
      actions={
        mayEdit && <Button onClick={() => setOpen('set')}>{has ? 'Replace' : 'Add a certificate'}</Button>
      }
    >
      {has ? (
        <Shown domain={domain} />
      ) : (
        <p class="muted">There is none: this host is not served over TLS.</p>
      )}
      {domain.certificate_order && <Ordered domain={domain} order={domain.certificate_order} />}
      {has && mayEdit && (
        <div>
          <Button look="plain" onClick={() => setOpen('delete')}>
            Delete the certificate
          </Button>
        </div>
      )}
      {open === 'set' && <SetCertificate domain={domain} onClose={close} />}
      {open === 'delete' && (
        <FormDialog
          title="Delete the certificate"
          action="Delete"
          isDangerous
          onClose={close}
          onSubmit={async () => {
            await call('DELETE /api/domains/{id}/certificate', { params: { id: domain.id } });
            invalidate('/api/domains');
            done('The certificate is deleted');
          }}
        >
          <p>New connections to {domain.host} with TLS fail from then on.</p>
        </FormDialog>
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

const PLACES = ['body.certificate', 'body.private_key'] as const;

function SetCertificate({ domain, onClose }: { readonly domain: Domain; readonly onClose: () => void }) {
  const [certificate, setCertificate] = useState('');
  const [key, setKey] = useState('');
  const [error, setError] = useState<ApiError>();
  const save = async () => {
    setError(undefined);
    try {
      const body = { certificate, private_key: key };
      const { warnings } = await call('PUT /api/domains/{id}/certificate', {
        params: { id: domain.id },
        body,
      });
      invalidate('/api/domains');
      done(warnings[0] ?? 'The certificate is in force');
      onClose();
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  return (
    <Dialog title={`Certificate of ${domain.host}`} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <TextArea
          label="Certificate"
          hint="PEM: that of the host first, then those that lead to one that clients know."
          rows={6}
          value={certificate}
          problem={problemAt(error, 'body.certificate')}
          onInput={setCertificate}
        />
        <SecretField
          label="Private key"
          value={key}
          problem={problemAt(error, 'body.private_key')}
          onInput={setKey}
        />
        {error && !isAtOneOf(error, PLACES) && <ErrorNotice error={error} />}
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" isSubmit isDisabled={certificate === '' || key === ''}>
            Save
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
