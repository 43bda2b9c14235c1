/** The secrets of a domain, a collection or an endpoint. Their values are written and never shown. */
import { useState } from 'preact/hooks';
import { type ApiError, call } from '../api/client.js';
import { invalidate, toApiError, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Button, TextField } from '../base/controls.js';
import { Dialog, FormDialog } from '../base/dialog.js';
import { ErrorNotice, Loaded } from '../base/notices.js';
import { isAtOneOf, problemAt } from '../base/problems.js';
import { Ago } from '../base/text.js';
import { done } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { Secret } from '../generated/routes.js';
import { nameOfActor, type Owner } from './owner.js';
import { SecretField } from './secret-field.js';
import { Section } from './section.js';

/** What a dialog is open for: a new secret, or one that is there. */
type Open =
  | { readonly doing: 'set'; readonly name: string }
  | { readonly doing: 'delete'; readonly name: string };

export function SecretsSection({ owner }: { readonly owner: Owner }) {
  const mayRead = may('secrets:read');
  const mayEdit = may('secrets:write');
  const [open, setOpen] = useState<Open>();
  const result = useQuery(
    `GET /api/${owner.kind}/{id}/secrets`,
    mayRead ? { params: { id: owner.id } } : undefined,
  );
  if (!mayRead) return null;
  const close = () => setOpen(undefined);
  return (
    <Section
      title="Secrets"
      hint="A handler finds them in its environment, too. They are stored encrypted, and nobody can read them here."
      actions={mayEdit && <Button onClick={() => setOpen({ doing: 'set', name: '' })}>Add a secret</Button>}
    >
      <Loaded result={result}>
        {(secrets) =>
          secrets.length === 0 ? (
            <p class="muted">There are none.</p>
          ) : (
            <Secrets secrets={secrets} mayEdit={mayEdit} onOpen={setOpen} />
          )
        }
      </Loaded>
      {open?.doing === 'set' && <SetSecret owner={owner} name={open.name} onClose={close} />}
      {open?.doing === 'delete' && (
        <FormDialog
          title={`Delete the secret ${open.name}`}
          action="Delete"
          isDangerous
          onClose={close}
          onSubmit={async () => {
            const params = { id: owner.id, name: open.name };
            await call(`DELETE /api/${owner.kind}/{id}/secrets/{name}`, { params });
            changed(owner);
            done(`${open.name} is deleted`);
          }}
        >
          <p>Handlers that need it no longer find it. Nobody can bring its value back.</p>
        </FormDialog>
      )}
    </Section>
  );
}

function changed(owner: Owner): void {
  invalidate(`/api/${owner.kind}/${owner.id}`, '/api/endpoints');
}

interface SecretsProps {
  readonly secrets: readonly Secret[];
  readonly mayEdit: boolean;
  readonly onOpen: (open: Open) => void;
}

function Secrets({ secrets, mayEdit, onOpen }: SecretsProps) {
  return (
    <ul class="entries">
      {secrets.map(({ name, updated_at: at, actor }) => (
        <li key={name}>
          <span>
            <code>{name}</code>{' '}
            <span class="small muted">
              set <Ago at={at} /> by <Visible text={nameOfActor(actor)} isOneLine />
            </span>
          </span>
          {mayEdit && (
            <span class="actions">
              <Button isSmall label={`Replace ${name}`} onClick={() => onOpen({ doing: 'set', name })}>
                Replace
              </Button>
              <Button
                isSmall
                look="plain"
                label={`Delete ${name}`}
                onClick={() => onOpen({ doing: 'delete', name })}
              >
                Delete
              </Button>
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

interface SetSecretProps {
  readonly owner: Owner;
  /** Empty for a new one. */
  readonly name: string;
  readonly onClose: () => void;
}

/** What is typed here is kept nowhere. */
function SetSecret({ owner, name: given, onClose }: SetSecretProps) {
  const [name, setName] = useState(given);
  const [value, setValue] = useState('');
  const [error, setError] = useState<ApiError>();
  const save = async () => {
    setError(undefined);
    try {
      const params = { id: owner.id, name };
      await call(`PUT /api/${owner.kind}/{id}/secrets/{name}`, { params, body: { value } });
      changed(owner);
      done(`${name} is set`);
      onClose();
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  return (
    <Dialog title={given === '' ? 'Add a secret' : `Replace ${given}`} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {given === '' && (
          <TextField
            label="Name"
            value={name}
            placeholder="PAYMENT_KEY"
            autocomplete="off"
            required
            autofocus
            hint="A plain variable of this name becomes secret."
            problem={problemAt(error, 'path.name')}
            onInput={setName}
          />
        )}
        <SecretField
          label="Value"
          value={value}
          problem={problemAt(error, 'body.value')}
          onInput={setValue}
        />
        {error && !isAtOneOf(error, ['path.name', 'body.value']) && <ErrorNotice error={error} />}
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" onClick={save} isDisabled={name === ''}>
            {given === '' ? 'Add' : 'Replace'}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
