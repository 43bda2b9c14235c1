/** Secrets, of whatever has them. Their values are written and never shown. */
import { call } from '../api/client.js';
import { invalidate, type Result, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import { Loaded } from '../base/notices.js';
import { Ago } from '../base/text.js';
import { done } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { Secret } from '../generated/routes.js';
import { nameOfActor, type Owner } from './owner.js';
import { Section } from './section.js';

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
  return (
    <Section
      title={place.title}
      hint={place.hint}
      actions={mayEdit && <Button onClick={() => askForNew(place)}>Add a secret</Button>}
    >
      <Loaded result={result}>
        {(secrets) =>
          secrets.length === 0 ? (
            <p class="muted">There are none.</p>
          ) : (
            <Secrets place={place} secrets={secrets} mayEdit={mayEdit} />
          )
        }
      </Loaded>
    </Section>
  );
}

interface SecretsProps {
  readonly secrets: readonly Secret[];
  readonly mayEdit: boolean;
  readonly place: SecretPlace;
}

function Secrets({ place, secrets, mayEdit }: SecretsProps) {
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
              <Button isSmall label={`Replace ${name}`} onClick={() => askForValue(place, name)}>
                Replace
              </Button>
              <Button isSmall look="plain" label={`Delete ${name}`} onClick={() => askToDelete(place, name)}>
                Delete
              </Button>
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

/** What is typed here is kept nowhere. */
function askForNew(place: SecretPlace): void {
  ask({
    title: 'Add a secret',
    action: 'Add',
    fields: {
      name: {
        label: 'Name',
        placeholder: 'PAYMENT_KEY',
        autocomplete: 'off',
        required: true,
        autofocus: true,
        isAwaited: true,
        hint: place.nameHint,
        place: 'path.name',
      },
      value: VALUE,
    },
    run: ({ name, value }) => set(place, name, value),
  });
}

function askForValue(place: SecretPlace, name: string): void {
  ask({
    title: `Replace ${name}`,
    action: 'Replace',
    fields: { value: VALUE },
    run: ({ value }) => set(place, name, value),
  });
}

const VALUE = { label: 'Value', as: 'concealed' } as const;

async function set(place: SecretPlace, name: string, value: string): Promise<void> {
  await place.set(name, value);
  done(`${name} is set`);
}

function askToDelete(place: SecretPlace, name: string): void {
  ask({
    title: `Delete the secret ${name}`,
    action: 'Delete',
    isDangerous: true,
    text: `${place.whenDeleted} Nobody can bring its value back.`,
    async run() {
      await place.remove(name);
      done(`${name} is deleted`);
    },
  });
}
