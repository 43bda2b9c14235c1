/** The first admin of an API that is closed by API_KEY: whoever has the key makes them here. */
import { useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { send } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { signIn } from '../api/session.js';
import { Button, TextField } from '../base/controls.js';
import { ErrorNotice } from '../base/notices.js';
import { isAtOneOf, problemAt } from '../base/problems.js';

/** Its fields are not there while it is closed: they would confuse what fills in passwords. */
export function FirstAdminByKey() {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>There is no user yet</summary>
      {isOpen && <AdminForm />}
    </details>
  );
}

function AdminForm() {
  const [key, setKey] = useState('');
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<ApiError>();
  const create = async () => {
    setError(undefined);
    try {
      const body = { email, name: email, password, role: 'admin' };
      await send('POST', '/api/users', body, { key });
      await signIn(email, password);
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <p class="small muted">
        On the gateway’s machine, <code>npm run user -- create-admin EMAIL</code> makes the first admin. With
        its API_KEY, you can do it here; the key is not kept.
      </p>
      <TextField label="API key" type="password" autocomplete="off" required value={key} onInput={setKey} />
      <TextField
        label="Email of the admin"
        problem={problemAt(error, 'body.email')}
        type="email"
        autocomplete="off"
        required
        value={email}
        onInput={setEmail}
      />
      <TextField
        label="Password of the admin"
        problem={problemAt(error, 'body.password')}
        type="password"
        autocomplete="new-password"
        hint="12 characters or more"
        required
        value={password}
        onInput={setPassword}
      />
      {error && !isAtOneOf(error, ['body.email', 'body.password']) && <ErrorNotice error={error} />}
      <Button isSubmit>Create and sign in</Button>
    </form>
  );
}
