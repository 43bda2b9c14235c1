/** Where somebody is signed in. */
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Button } from '../base/controls.js';
import { Dialog } from '../base/dialog.js';
import { Loaded } from '../base/notices.js';
import { done } from '../base/toasts.js';
import type { User } from '../generated/routes.js';
import { SessionTable } from './session-table.js';

export function UserSessions({ user, onClose }: { readonly user: User; readonly onClose: () => void }) {
  const result = useQuery('GET /api/users/{id}/sessions', { params: { id: user.id } });
  const end = async () => {
    await call('DELETE /api/users/{id}/sessions', { params: { id: user.id } });
    invalidate('/api/users', '/api/sessions');
    done('The sessions have ended.');
  };
  return (
    <Dialog title={`Sessions of ${user.email}`} isWide onClose={onClose}>
      <Loaded result={result}>
        {(sessions) =>
          sessions.length > 0 ? <SessionTable sessions={sessions} /> : <p class="muted">Signed in nowhere.</p>
        }
      </Loaded>
      <footer>
        <Button onClick={onClose}>Close</Button>
        {may('users:write') && (result.data?.length ?? 0) > 0 && (
          <Button look="danger" onClick={end}>
            End all sessions
          </Button>
        )}
      </footer>
    </Dialog>
  );
}
