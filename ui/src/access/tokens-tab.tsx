/** Credentials of programs. */
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { ask } from '../base/ask.js';
import { Button } from '../base/controls.js';
import { Expires } from '../base/expiry.js';
import { ListTable } from '../base/list-table.js';
import { Empty, Loaded } from '../base/notices.js';
import { Ago } from '../base/text.js';
import { done } from '../base/toasts.js';
import { Visible } from '../base/visible.js';
import type { Token } from '../generated/routes.js';
import { NewToken } from './new-token.js';

export function TokensTab() {
  const result = useQuery('GET /api/tokens', {});
  const users = useQuery('GET /api/users', may('users:read') ? {} : undefined);
  const [params, change] = useAddress();
  // Not made by other tokens, nor while nobody has to sign in.
  const mayMake = may('tokens:write') && (me.value?.kind === 'user' || me.value?.kind === 'api_key');
  const ownerOf = ({ user_id }: Token) =>
    user_id === null ? 'API_KEY' : (users.data?.find(({ id }) => id === user_id)?.email ?? 'you');
  const add = (
    <Button look="primary" onClick={() => change({ new: 'token' })}>
      New token
    </Button>
  );
  return (
    <>
      {mayMake && <div class="actions end">{add}</div>}
      <Loaded result={result} lines={5}>
        {(tokens) =>
          tokens.length > 0 ? (
            <TokenTable tokens={tokens} ownerOf={ownerOf} />
          ) : (
            <Empty title="There are no tokens">
              <p>
                {mayMake
                  ? 'A program, such as a pipeline that deploys, signs in with a token. It may do what you choose, and never more than you.'
                  : 'Tokens are made by users: sign in as one.'}
              </p>
            </Empty>
          )
        }
      </Loaded>
      {params.has('new') && mayMake && <NewToken onClose={() => change({ new: undefined })} />}
    </>
  );
}

interface TokenTableProps {
  readonly tokens: readonly Token[];
  readonly ownerOf: (token: Token) => string;
}

function TokenTable({ tokens, ownerOf }: TokenTableProps) {
  return (
    <ListTable columns={['Token', 'May', 'For', 'Last used', 'Expires']} hasActions>
      {tokens.map((token) => (
        <tr key={token.id}>
          <th scope="row">
            <Visible text={token.name} isOneLine />
            <div class="muted small">by {ownerOf(token)}</div>
          </th>
          <td data-label="May" class="wrap">
            <details>
              <summary>
                {token.permissions.length} {token.permissions.length === 1 ? 'permission' : 'permissions'}
              </summary>
              <span class="small">{token.permissions.join(', ')}</span>
            </details>
          </td>
          <td data-label="For" class="wrap">
            {token.domains.length > 0 ? token.domains.join(', ') : 'all that its maker sees'}
          </td>
          <td data-label="Last used">
            {token.last_used_at === null ? <span class="muted">never</span> : <Ago at={token.last_used_at} />}
          </td>
          <td data-label="Expires">
            <Expires at={token.expires_at} />
          </td>
          <td class="end">
            {may('tokens:write') && (
              <Button isSmall look="danger" label={`Revoke ${token.name}`} onClick={() => askToRevoke(token)}>
                Revoke
              </Button>
            )}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function askToRevoke({ id, name }: Token): void {
  ask({
    title: `Revoke “${name}”?`,
    action: 'Revoke the token',
    isDangerous: true,
    text: 'Programs that use it are refused from now on. This cannot be undone.',
    async run() {
      await call('DELETE /api/tokens/{id}', { params: { id } });
      invalidate('/api/tokens');
      done('The token is revoked.');
    },
  });
}
