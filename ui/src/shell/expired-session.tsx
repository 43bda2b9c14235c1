/** A session that has ended: one signs in again above the page, which keeps what was typed. */
import { isExpired, me } from '../api/session.js';
import { Dialog } from '../base/dialog.js';
import { SignInForm } from './sign-in.js';

export function ExpiredSession() {
  if (!isExpired.value) return null;
  const email = me.value?.user?.email;
  const wasOpen = me.value?.kind === 'anonymous';
  return (
    <Dialog
      title={wasOpen ? 'The gateway has a first admin' : 'Your session has ended'}
      losesNothing
      onClose={() => undefined}
    >
      <p class="muted">
        {wasOpen ? 'From now on, people have to sign in.' : 'Sign in again to continue.'} What you have typed
        is still here.
      </p>
      <SignInForm {...(email !== undefined && { email })} />
    </Dialog>
  );
}
