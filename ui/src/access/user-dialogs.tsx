/** Forms of users. */
import { useMemo, useState } from 'preact/hooks';
import { call } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { loadSession, makeFirstAdmin } from '../api/session.js';
import { Button, SelectField, TextField } from '../base/controls.js';
import { CopyField } from '../base/copy.js';
import { Dialog } from '../base/dialog.js';
import { Form } from '../base/form.js';
import { HostsField, hostsOf } from '../base/hosts-field.js';
import { DeletedNotice } from '../base/last-seen.js';
import { done } from '../base/toasts.js';
import type { User } from '../generated/routes.js';
import { useForm } from '../settings/use-form.js';

const ROLES = [
  { value: 'admin' as const, label: 'admin: everything' },
  { value: 'editor' as const, label: 'editor: defines, compiles and deploys' },
  { value: 'viewer' as const, label: 'viewer: reads' },
];

interface UserDialogProps {
  /** Undefined: a new one. */
  readonly user?: User;
  /** Whether somebody else has deleted it while it is changed here. */
  readonly isDeleted?: boolean;
  /** Whether everybody has to sign in from then on. */
  readonly isFirst?: boolean;
  readonly onClose: () => void;
}

export function UserDialog({ user, isDeleted = false, isFirst, onClose }: UserDialogProps) {
  const form = useForm(`user ${user?.id ?? 'new'}`, useSaved(user));
  const { email, name, role, hosts } = form.values;
  const [password, setPassword] = useState('');
  const isOfProvider = user !== undefined && user.issuer !== null;
  const save = async () => {
    const shared = { email: email.trim(), name, role, domains: hostsOf(hosts) };
    // A provider of identities says who its users are.
    if (user)
      await call('PUT /api/users/{id}', { params: { id: user.id }, body: isOfProvider ? { name } : shared });
    else if (isFirst) await makeFirstAdmin({ email: shared.email, name, password });
    else await call('POST /api/users', { body: { ...shared, password } });
    form.discard();
    invalidate('/api/users');
    await loadSession();
    if (user) done('The user is saved.');
    else if (isFirst) done('You are the first admin, and signed in.');
    else done('Created the user. Tell them the password; it is not sent by email.');
    onClose();
  };
  const cancel = () => {
    form.discard();
    onClose();
  };
  return (
    <Dialog
      title={user ? `Edit ${user.email}` : 'New user'}
      losesNothing={!isDeleted}
      onClose={isDeleted ? cancel : onClose}
    >
      {isDeleted && <DeletedNotice kind="user" />}
      <Form
        action={user ? 'Save' : 'Create the user'}
        isDisabled={isDeleted}
        onSubmit={save}
        onCancel={cancel}
      >
        {(problemAt) => (
          <>
            {isFirst && (
              <p class="notice warn">The first user is an admin, and closes the gateway to everybody else.</p>
            )}
            {isOfProvider && (
              <p class="muted">They sign in with {user.issuer}, which says their email and role.</p>
            )}
            <TextField
              label="Name"
              required
              autocomplete="off"
              value={name}
              onInput={(value) => form.set('name', value)}
              problem={problemAt('body.name')}
            />
            {!isOfProvider && (
              <>
                <TextField
                  label="Email"
                  type="email"
                  required
                  autocomplete="off"
                  value={email}
                  onInput={(value) => form.set('email', value)}
                  problem={problemAt('body.email')}
                />
                {!user && (
                  <NewPasswordField
                    value={password}
                    onInput={setPassword}
                    problem={problemAt('body.password')}
                  />
                )}
              </>
            )}
            {!isOfProvider && !isFirst && (
              <>
                <SelectField
                  label="Role"
                  options={ROLES}
                  value={role}
                  onChange={(value) => form.set('role', value)}
                  problem={problemAt('body.role')}
                />
                <HostsField
                  value={hosts}
                  onInput={(value) => form.set('hosts', value)}
                  problem={problemAt('body.domains')}
                  hint="They see only these hosts and what is for them; none: everything."
                />
              </>
            )}
          </>
        )}
      </Form>
    </Dialog>
  );
}

/** What is not typed here follows what somebody else changes meanwhile. */
function useSaved(user: User | undefined) {
  return useMemo(
    () => ({
      email: user?.email ?? '',
      name: user?.name ?? '',
      role: user?.role ?? ('editor' as const),
      hosts: user?.domains.join('\n') ?? '',
    }),
    [user],
  );
}

interface PasswordDialogProps {
  readonly user: User;
  readonly isDeleted: boolean;
  readonly onClose: () => void;
}

export function PasswordDialog({ user, isDeleted, onClose }: PasswordDialogProps) {
  const [password, setPassword] = useState('');
  return (
    <Dialog title={`New password for ${user.email}`} onClose={onClose}>
      {isDeleted && <DeletedNotice kind="user" />}
      <Form
        action="Set the password"
        isDisabled={isDeleted}
        onCancel={onClose}
        onSubmit={async () => {
          await call('PUT /api/users/{id}', { params: { id: user.id }, body: { password } });
          invalidate('/api/users');
          done('The password is set, and their sessions have ended.');
          onClose();
        }}
      >
        {(problemAt) => (
          <>
            <p class="muted">All their sessions end; tokens stay.</p>
            <NewPasswordField value={password} onInput={setPassword} problem={problemAt('body.password')} />
          </>
        )}
      </Form>
    </Dialog>
  );
}

interface NewPasswordProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly problem: string | undefined;
}

/** Typed by whoever gives it to somebody else, or made up here and shown. */
function NewPasswordField({ value, onInput, problem }: NewPasswordProps) {
  const [made, setMade] = useState<string>();
  if (made !== undefined && made === value)
    return <CopyField label="Password" value={made} hint="Copy it now: it is not shown again." />;
  return (
    <div class="stack tight">
      <TextField
        label="Password"
        type="password"
        required
        autocomplete="new-password"
        hint="12 characters or more"
        value={value}
        onInput={onInput}
        problem={problem}
      />
      <div>
        <Button
          isSmall
          onClick={() => {
            const password = madeUp();
            setMade(password);
            onInput(password);
          }}
        >
          Make one up
        </Button>
      </div>
    </div>
  );
}

/** Without those that look alike. */
const LETTERS = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const LENGTH = 20;

function madeUp(): string {
  return Array.from(
    crypto.getRandomValues(new Uint32Array(LENGTH)),
    (one) => LETTERS[one % LETTERS.length],
  ).join('');
}
