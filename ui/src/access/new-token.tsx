/** Makes a token, and shows it once. */
import { useState } from 'preact/hooks';
import { call } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { me, type Permission } from '../api/session.js';
import { Button, Check, TextField } from '../base/controls.js';
import { Dialog } from '../base/dialog.js';
import { ExpiryFields, expiryOf, FIRST_EXPIRY } from '../base/expiry.js';
import { Form } from '../base/form.js';
import { HostsField, hostsOf } from '../base/hosts-field.js';
import { ShownOnce } from '../base/shown-once.js';

/** What a pipeline needs that deploys. */
const DEPLOYING: readonly string[] = [
  ...[
    'domains:read',
    'collections:read',
    'collections:write',
    'endpoints:read',
    'endpoints:write',
    'endpoints:deploy',
    'builds:read',
  ],
  ...['services:read', 'variables:read', 'variables:write', 'imports:read', 'imports:write', 'logs:read'],
];

export function NewToken({ onClose }: { readonly onClose: () => void }) {
  const [token, setToken] = useState<string>();
  if (token !== undefined)
    return (
      <ShownOnce
        title="The new token"
        label="Token"
        value={token}
        hint="Copy it now: it is not stored, and nothing shows it again. Programs send it as “Authorization: Bearer …”."
        onClose={onClose}
      />
    );
  return (
    <Dialog title="New token" isWide onClose={onClose}>
      <TokenForm onMade={setToken} onCancel={onClose} />
    </Dialog>
  );
}

interface TokenFormProps {
  readonly onMade: (token: string) => void;
  readonly onCancel: () => void;
}

function TokenForm({ onMade, onCancel }: TokenFormProps) {
  const own = me.value?.permissions ?? [];
  const [name, setName] = useState('');
  const [permissions, setPermissions] = useState<readonly Permission[]>([]);
  const [hosts, setHosts] = useState('');
  const [expiry, setExpiry] = useState(FIRST_EXPIRY);
  const make = async () => {
    const expires_at = expiryOf(expiry);
    const { data } = await call('POST /api/tokens', {
      body: { name, permissions, domains: hostsOf(hosts), expires_at },
    });
    invalidate('/api/tokens');
    onMade(data.token);
  };
  return (
    <Form
      action="Make the token"
      onSubmit={make}
      onCancel={onCancel}
      isDisabled={permissions.length === 0}
      whyNot="Choose what it may first."
    >
      {(problemAt) => (
        <>
          <TextField
            label="Name"
            required
            autocomplete="off"
            hint="What uses it, such as “CI of the shop”"
            value={name}
            onInput={setName}
            problem={problemAt('body.name')}
          />
          <Permissions
            own={own}
            value={permissions}
            onChange={setPermissions}
            problem={problemAt('body.permissions')}
          />
          <HostsField
            value={hosts}
            onInput={setHosts}
            problem={problemAt('body.domains')}
            hint="It sees only these; none: all that you see."
          />
          <ExpiryFields value={expiry} onChange={setExpiry} problem={problemAt('body.expires_at')} />
        </>
      )}
    </Form>
  );
}

interface PermissionsProps {
  readonly own: readonly Permission[];
  readonly value: readonly Permission[];
  readonly onChange: (value: readonly Permission[]) => void;
  readonly problem: string | undefined;
}

/** The choice of permissions, of those that one has oneself, by what they are about. */
function Permissions({ own, value, onChange, problem }: PermissionsProps) {
  const kinds = [...new Set(own.map((permission) => permission.split(':')[0] ?? ''))];
  const set = (chosen: (permission: Permission) => boolean) => onChange(own.filter(chosen));
  return (
    <fieldset class="choices">
      <legend>It may</legend>
      <div class="actions">
        <Button isSmall onClick={() => set((one) => one.endsWith(':read'))}>
          Read everything
        </Button>
        <Button isSmall onClick={() => set((one) => DEPLOYING.includes(one))}>
          Deploy
        </Button>
        <Button isSmall onClick={() => set(() => true)}>
          All that you may
        </Button>
        <Button isSmall look="plain" onClick={() => set(() => false)}>
          None
        </Button>
      </div>
      <div class="permissions">
        {kinds.map((kind) => (
          <div key={kind} class="permission-group">
            {own
              .filter((permission) => permission.startsWith(`${kind}:`))
              .map((permission) => (
                <Check
                  key={permission}
                  label={<code>{permission}</code>}
                  isChecked={value.includes(permission)}
                  onChange={(isChecked) =>
                    set((one) => (one === permission ? isChecked : value.includes(one)))
                  }
                />
              ))}
          </div>
        ))}
      </div>
      {problem !== undefined && <div class="problem">{problem}</div>}
    </fieldset>
  );
}
