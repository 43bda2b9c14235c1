/** Secrets, of whatever has them. Their values are written and never shown. */
import { useState } from 'preact/hooks';
import { type ApiError, call } from '../api/client.js';
import { invalidate, type Result, toApiError, useQuery } from '../api/query.js';
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

/** What has secrets. */
export interface SecretPlace {
  readonly title: string;
  readonly hint: string;
  /** Said of the name of a new one. */
  readonly nameHint?: string;
  /** What becomes of it when one is deleted. */
  readonly whenDeleted: string;
  readonly set: (name: string, value: string) => Promise<unknown>;
  readonly remove: (name: string) => Promise<unknown>;
}

/** The secrets of a domain, a collection or an endpoint. */
export function SecretsSection({ owner }: { readonly owner: Owner }) {
  const mayRead = may('secrets:read');
  const result = useQuery(
    `GET /api/${owner.kind}/{id}/secrets`,
    mayRead ? { params: { id: owner.id } } : undefined,
  );
  if (!mayRead) return null;
  const change = async (changed: Promise<unknown>) => {
    await changed;
    invalidate(`/api/${owner.kind}/${owner.id}`, '/api/endpoints');
  };
  const place: SecretPlace = {
    title: 'Secrets',
    hint: 'A handler finds them in its environment, too. They are stored encrypted, and nobody can read them here.',
    nameHint: 'A plain variable of this name becomes secret.',
    whenDeleted: 'Handlers that need it no longer find it.',
    set: (name, value) =>
      change(
        call(`PUT /api/${owner.kind}/{id}/secrets/{name}`, {
          params: { id: owner.id, name },
          body: { value },
        }),
      ),
    remove: (name) =>
      change(call(`DELETE /api/${owner.kind}/{id}/secrets/{name}`, { params: { id: owner.id, name } })),
  };
  return <SecretsOf place={place} result={result} />;
}

interface SecretsOfProps {
  readonly place: SecretPlace;
  readonly result: Result<readonly Secret[]> & { readonly refresh: () => void };
}

/** A list of secrets, each of which is replaced or deleted. */
export function SecretsOf({ place, result }: SecretsOfProps) {
  const mayEdit = may('secrets:write');
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  return (
    <Section
      title={place.title}
      hint={place.hint}
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
      {open?.doing === 'set' && <SetSecret place={place} name={open.name} onClose={close} />}
      {open?.doing === 'delete' && (
        <FormDialog
          title={`Delete the secret ${open.name}`}
          action="Delete"
          isDangerous
          onClose={close}
          onSubmit={async () => {
            await place.remove(open.name);
            done(`${open.name} is deleted`);
          }}
        >
          <p>{place.whenDeleted} Nobody can bring its value back.</p>
        </FormDialog>
      )}
    </Section>
  );
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
  readonly place: SecretPlace;
  /** Empty for a new one. */
  readonly name: string;
  readonly onClose: () => void;
}

/** What is typed here is kept nowhere. */
function SetSecret({ place, name: given, onClose }: SetSecretProps) {
  const [name, setName] = useState(given);
  const [value, setValue] = useState('');
  const [error, setError] = useState<ApiError>();
  const save = async () => {
    setError(undefined);
    try {
      await place.set(name, value);
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
            hint={place.nameHint}
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
