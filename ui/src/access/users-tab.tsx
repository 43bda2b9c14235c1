/** Who may sign in. */
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import { useLastSeen } from '../base/last-seen.js';
import { ListTable } from '../base/list-table.js';
import { Empty, Loaded } from '../base/notices.js';
import { Ago, Badge, type Tone } from '../base/text.js';
import { done } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { User } from '../generated/routes.js';
import { PasswordDialog, UserDialog } from './user-dialogs.js';
import { UserSessions } from './user-sessions.js';

const TONES: Readonly<Record<User['role'], Tone>> = { admin: 'warn', editor: 'ok', viewer: 'idle' };

export function UsersTab() {
  const result = useQuery('GET /api/users', {});
  const [params, change] = useAddress();
  const lastSeen = useLastSeen(result.data);
  const close = () => change({ new: undefined, edit: undefined, password: undefined, sessions: undefined });
  const [edited, password] = [lastSeen(params.get('edit')), lastSeen(params.get('password'))];
  const sessions = lastSeen(params.get('sessions'));
  const add = (
    <Button look="primary" onClick={() => change({ new: 'user' })}>
      New user
    </Button>
  );
  return (
    <>
      {may('users:write') && <div class="actions end">{add}</div>}
      <Loaded result={result} lines={5}>
        {(users) =>
          users.length > 0 ? (
            <UserTable users={users} />
          ) : (
            <Empty title="There are no users yet">
              <p>
                Until there is one, whoever reaches this machine’s loopback address may do everything. The
                first user is an admin, and from then on everybody has to sign in.
              </p>
            </Empty>
          )
        }
      </Loaded>
      {params.has('new') && may('users:write') && (
        <UserDialog isFirst={result.data?.length === 0} onClose={close} />
      )}
      {edited && may('users:write') && (
        <UserDialog user={edited.one} isDeleted={edited.isDeleted} onClose={close} />
      )}
      {password && may('users:write') && (
        <PasswordDialog user={password.one} isDeleted={password.isDeleted} onClose={close} />
      )}
      {sessions && <UserSessions user={sessions.one} onClose={close} />}
    </>
  );
}

function UserTable({ users }: { readonly users: readonly User[] }) {
  const [, change] = useAddress();
  return (
    <ListTable columns={['User', 'Role', 'For', 'Since']} hasActions>
      {users.map((user) => (
        <tr key={user.id}>
          <th scope="row">
            <Visible text={user.name} isOneLine />
            {user.id === me.value?.user?.id && <span class="muted small"> (you)</span>}
            <div class="muted small">{user.email}</div>
          </th>
          <td data-label="Role">
            <Badge tone={TONES[user.role]}>{user.role}</Badge>
          </td>
          <td data-label="For" class="wrap">
            {user.domains.length > 0 ? user.domains.join(', ') : 'everything'}
          </td>
          <td data-label="Since">
            <Ago at={user.created_at} />
          </td>
          <td class="end">
            <div class="actions end">
              <Button
                isSmall
                label={`Sessions of ${user.email}`}
                onClick={() => change({ sessions: user.id })}
              >
                Sessions
              </Button>
              {may('users:write') && (
                <>
                  <Button isSmall label={`Edit ${user.email}`} onClick={() => change({ edit: user.id })}>
                    Edit
                  </Button>
                  {user.issuer === null && user.id !== me.value?.user?.id && (
                    <Button
                      isSmall
                      label={`New password for ${user.email}`}
                      onClick={() => change({ password: user.id })}
                    >
                      Password
                    </Button>
                  )}
                  <Button
                    isSmall
                    look="danger"
                    label={`Delete ${user.email}`}
                    onClick={() => askToDelete(user)}
                  >
                    Delete
                  </Button>
                </>
              )}
            </div>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function askToDelete({ id, email, name }: User): void {
  ask({
    title: `Delete ${email}?`,
    action: 'Delete the user',
    isDangerous: true,
    text: `Sessions and tokens of ${name} go too, so programs that use these are refused. What they have made stays.`,
    async run() {
      await call('DELETE /api/users/{id}', { params: { id } });
      invalidate('/api/users', '/api/tokens', '/api/session');
      done('The user is deleted.');
    },
  });
}
