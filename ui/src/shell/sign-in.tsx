/** The ways in. */
import { useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { toApiError } from '../api/query.js';
import { me, signIn } from '../api/session.js';
import { Button, TextField } from '../base/controls.js';
import { ErrorNotice } from '../base/notices.js';
import { FirstAdminByKey } from './first-admin-by-key.js';
import { Logo } from './logo.js';

export function SignIn() {
  return (
    <main class="alone">
      <div class="card">
        <div class="brand">
          <Logo /> Edge Gateway
        </div>
        <h1>Sign in</h1>
        <SignInForm />
        <FirstAdminByKey />
      </div>
    </main>
  );
}

/** @param email of the person whose session has ended */
export function SignInForm({ email: known = '' }: { readonly email?: string }) {
  const [email, setEmail] = useState(known);
  const [password, setPassword] = useState('');
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await signIn(email, password);
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <TextField
        label="Email"
        type="email"
        autocomplete="username"
        required
        autofocus={known === ''}
        value={email}
        onInput={setEmail}
      />
      <TextField
        label="Password"
        type="password"
        autocomplete="current-password"
        required
        autofocus={known !== ''}
        value={password}
        onInput={setPassword}
      />
      {error && <ErrorNotice error={error} />}
      <Button isSubmit look="primary" isDisabled={isBusy}>
        Sign in
      </Button>
      {me.value?.sign_in.includes('oidc') && (
        <a
          class="button"
          href={`/api/session/oidc?return_to=${encodeURIComponent(location.pathname + location.search)}`}
        >
          Sign in with your organization
        </a>
      )}
    </form>
  );
}
