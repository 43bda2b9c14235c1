/** The keys of callers of a domain: what the policy “Who may call” asks for. */
import { useState } from 'preact/hooks';
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { ask, openDialog } from '../base/ask.js';
import { Button, TextField } from '../base/controls.js';
import { Dialog } from '../base/dialog.js';
import { Expires, ExpiryFields, expiryOf, FIRST_EXPIRY } from '../base/expiry.js';
import { Form } from '../base/form.js';
import { ListTable } from '../base/list-table.js';
import { Loaded } from '../base/notices.js';
import { ShownOnce } from '../base/shown-once.js';
import { Ago } from '../base/text.js';
import { done } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { DomainKey } from '../generated/routes.js';
import { Section } from './section.js';

export function KeysSection({ domainId }: { readonly domainId: string }) {
  const result = useQuery('GET /api/domains/{id}/keys', { params: { id: domainId } });
  const mayEdit = may('domains:write');
  return (
    <Section
      title="Keys of callers"
      hint="Where the policy “Who may call” asks for a key of the domain, requests need one of these, in X-Api-Key unless the policy names another header."
      actions={
        mayEdit && (
          <Button onClick={() => openDialog((close) => <NewKey domainId={domainId} onClose={close} />)}>
            New key
          </Button>
        )
      }
    >
      <Loaded result={result}>
        {(keys) =>
          keys.length === 0 ? (
            <p class="muted">There are none.</p>
          ) : (
            <Keys keys={keys} mayEdit={mayEdit} onRevoke={(key) => askToRevoke(domainId, key)} />
          )
        }
      </Loaded>
    </Section>
  );
}

function askToRevoke(domainId: string, { id, label }: DomainKey): void {
  ask({
    title: `Revoke “${label}”?`,
    action: 'Revoke the key',
    isDangerous: true,
    text: 'Callers that use it are refused from now on. This cannot be undone.',
    async run() {
      await call('DELETE /api/domains/{id}/keys/{key_id}', { params: { id: domainId, key_id: id } });
      invalidate(`/api/domains/${domainId}`);
      done('The key is revoked.');
    },
  });
}

interface KeysProps {
  readonly keys: readonly DomainKey[];
  readonly mayEdit: boolean;
  readonly onRevoke: (key: DomainKey) => void;
}

function Keys({ keys, mayEdit, onRevoke }: KeysProps) {
  return (
    <ListTable columns={['Key', 'Made', 'Expires']} hasActions isBare>
      {keys.map((key) => (
        <tr key={key.id}>
          <th scope="row">
            <Visible text={key.label} isOneLine />
            <div class="muted small">
              <code>{key.prefix}…</code>
            </div>
          </th>
          <td data-label="Made">
            <Ago at={key.created_at} />
          </td>
          <td data-label="Expires">
            <Expires at={key.expires_at} />
          </td>
          <td class="end">
            {mayEdit && (
              <Button isSmall look="danger" label={`Revoke ${key.label}`} onClick={() => onRevoke(key)}>
                Revoke
              </Button>
            )}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

interface NewKeyProps {
  readonly domainId: string;
  readonly onClose: () => void;
}

/** Makes a key, and shows it once. */
function NewKey({ domainId, onClose }: NewKeyProps) {
  const [label, setLabel] = useState('');
  const [expiry, setExpiry] = useState(FIRST_EXPIRY);
  const [made, setMade] = useState<string>();
  const make = async () => {
    const { data } = await call('POST /api/domains/{id}/keys', {
      params: { id: domainId },
      body: { label: label.trim(), expires_at: expiryOf(expiry) },
    });
    invalidate(`/api/domains/${domainId}`);
    setMade(data.key);
  };
  if (made !== undefined)
    return (
      <ShownOnce
        title="The new key"
        label="Key"
        value={made}
        hint="Copy it now: it is not stored, and nothing shows it again."
        onClose={onClose}
      />
    );
  return (
    <Dialog title="New key" onClose={onClose}>
      <Form action="Make the key" onSubmit={make} onCancel={onClose}>
        {(problemAt) => (
          <>
            <TextField
              label="Name"
              required
              autofocus
              autocomplete="off"
              hint="Who calls with it, such as “Shop on iOS”"
              value={label}
              onInput={setLabel}
              problem={problemAt('body.label')}
            />
            <ExpiryFields value={expiry} onChange={setExpiry} problem={problemAt('body.expires_at')} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
