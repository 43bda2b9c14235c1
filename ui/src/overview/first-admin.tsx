/** An API that is open to everybody on its machine says so, and offers to close it. */
import { useState } from 'preact/hooks';
import { makeFirstAdmin, me } from '../api/session.js';
import { Button, Check, TextField } from '../base/controls.js';
import { FormDialog } from '../base/dialog.js';
import { done } from '../base/toasts.js';

export function FirstAdmin() {
  const [isOpen, setOpen] = useState(false);
  if (me.value?.kind !== 'anonymous') return null;
  return (
    <div class="notice">
      <span>
        Whoever can use this machine may do everything here. With a first admin, people have to sign in.
      </span>
      <Button isSmall onClick={() => setOpen(true)}>
        Make the first admin
      </Button>
      {isOpen && <AdminDialog onClose={() => setOpen(false)} />}
    </div>
  );
}

function AdminDialog({ onClose }: { readonly onClose: () => void }) {
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [isShown, setShown] = useState(false);
  const create = async () => {
    await makeFirstAdmin({ email, name: name || email, password });
    done('You are the first admin. From now on, people have to sign in.');
  };
  return (
    <FormDialog title="The first admin" action="Create and sign in" onSubmit={create} onClose={onClose}>
      {(problemAt) => (
        <>
          <TextField
            label="Email"
            problem={problemAt('body.email')}
            type="email"
            autocomplete="username"
            required
            autofocus
            value={email}
            onInput={setEmail}
          />
          <TextField
            label="Name"
            autocomplete="name"
            problem={problemAt('body.name')}
            value={name}
            onInput={setName}
          />
          <TextField
            label="Password"
            problem={problemAt('body.password')}
            type={isShown ? 'text' : 'password'}
            autocomplete="new-password"
            hint="12 characters or more. A lost one is reset on this machine: npm run user -- reset-password EMAIL"
            required
            value={password}
            onInput={setPassword}
          />
          <Check label="Show what is typed" isChecked={isShown} onChange={setShown} />
        </>
      )}
    </FormDialog>
  );
}
