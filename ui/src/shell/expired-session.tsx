/** A session that has ended: one signs in again above the page, which keeps what was typed. */

import { invalidate } from '../api/query.js';
import { isExpired, me } from '../api/session.js';
import { Dialog } from '../base/dialog.js';
import { SignInForm } from './sign-in.js';

export function ExpiredSession() {
  if (!isExpired.value) return null;
  const email = me.value?.user?.email;
  return (
    <Dialog title="Your session has ended" onClose={() => undefined}>
      <p class="muted">Sign in again to go on. What you have typed is still here.</p>
      <SignInForm {...(email !== undefined && { email })} onDone={() => invalidate('/api/')} />
    </Dialog>
  );
}
