/** Where one is signed in. */
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { Loaded } from '../base/notices.js';
import { done } from '../base/toasts.js';
import { SessionTable } from './session-table.js';

export function SessionsTab() {
  const result = useQuery('GET /api/sessions', {});
  return (
    <>
      <p class="muted">
        Where you are signed in. End a session that you do not know, and change your password.
      </p>
      <Loaded result={result}>
        {(sessions) => (
          <SessionTable
            sessions={sessions}
            onEnd={async ({ id }) => {
              await call('DELETE /api/sessions/{id}', { params: { id } });
              invalidate('/api/sessions');
              done('The session has ended.');
            }}
          />
        )}
      </Loaded>
    </>
  );
}
