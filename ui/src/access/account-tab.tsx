/** One's own name and password. */
import { useState } from 'preact/hooks';
import { call } from '../api/client.js';
import { useQuery } from '../api/query.js';
import { loadSession, me, signIn } from '../api/session.js';
import { TextField } from '../base/controls.js';
import { Form } from '../base/form.js';
import { Loaded } from '../base/notices.js';
import { invalidAt } from '../base/problems.js';
import { done } from '../base/toasts.js';
import type { User } from '../generated/routes.js';

export function AccountTab() {
  const id = me.value?.user?.id ?? '';
  const result = useQuery('GET /api/users/{id}', { params: { id } });
  return (
    <Loaded result={result}>
      {(user) => (
        <>
          <div class="card pad">
            <dl class="facts">
              <dt>Email</dt>
              <dd>{user.email}</dd>
              <dt>Role</dt>
              <dd>{user.role}</dd>
              <dt>For</dt>
              <dd>{user.domains.length > 0 ? user.domains.join(', ') : 'everything'}</dd>
            </dl>
          </div>
          <section class="form" aria-labelledby="your-name">
            <h2 id="your-name">Your name</h2>
            <NameForm user={user} />
          </section>
          <section class="form" aria-labelledby="your-password">
            <h2 id="your-password">Your password</h2>
            {user.issuer === null ? (
              <PasswordForm user={user} />
            ) : (
              <p class="muted">You sign in with {user.issuer}, and have no password here.</p>
            )}
          </section>
        </>
      )}
    </Loaded>
  );
}

function NameForm({ user }: { readonly user: User }) {
  const [name, setName] = useState(user.name);
  return (
    <Form
      action="Save the name"
      onSubmit={async () => {
        await call('PUT /api/users/{id}', { params: { id: user.id }, body: { name } });
        await loadSession();
        done('Your name is saved.');
      }}
    >
      {(problemAt) => (
        <TextField
          label="Name"
          required
          autocomplete="name"
          value={name}
          onInput={setName}
          problem={problemAt('body.name')}
        />
      )}
    </Form>
  );
}

function PasswordForm({ user }: { readonly user: User }) {
  const [current, setCurrent] = useState('');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const change = async () => {
    if (password !== again) throw invalidAt('again', 'is not the same');
    const body = { current_password: current, password };
    await call('PUT /api/users/{id}', { params: { id: user.id }, body });
    // A new password ends all sessions, this one too.
    await signIn(user.email, password);
    for (const clear of [setCurrent, setPassword, setAgain]) clear('');
    done('Your password is changed. All other sessions have ended.');
  };
  return (
    <Form action="Change the password" onSubmit={change}>
      {(problemAt) => (
        <>
          <TextField
            label="Current password"
            type="password"
            required
            autocomplete="current-password"
            value={current}
            onInput={setCurrent}
            problem={problemAt('body.current_password')}
          />
          <TextField
            label="New password"
            type="password"
            required
            autocomplete="new-password"
            hint="12 characters or more"
            value={password}
            onInput={setPassword}
            problem={problemAt('body.password')}
          />
          <TextField
            label="New password again"
            type="password"
            required
            autocomplete="new-password"
            value={again}
            onInput={setAgain}
            problem={problemAt('again')}
          />
        </>
      )}
    </Form>
  );
}
