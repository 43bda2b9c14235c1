import { Button } from '../base/controls.js';
import { ListTable } from '../base/list-table.js';
import { Ago, Badge } from '../base/text.js';
import type { Session } from '../generated/routes.js';

interface SessionTableProps {
  readonly sessions: readonly Session[];
  /** Undefined: one alone cannot be ended. */
  readonly onEnd?: (session: Session) => Promise<unknown>;
}

export function SessionTable({ sessions, onEnd }: SessionTableProps) {
  return (
    <ListTable columns={['Browser', 'Address', 'Signed in', 'Last seen']} hasActions={onEnd !== undefined}>
      {sessions.map((session) => (
        <tr key={session.id}>
          <th scope="row" title={session.agent ?? undefined}>
            {browserOf(session.agent)} {session.current && <Badge tone="ok">this one</Badge>}
          </th>
          <td data-label="Address">
            <code>{session.address}</code>
          </td>
          <td data-label="Signed in">
            <Ago at={session.created_at} />
          </td>
          <td data-label="Last seen">
            <Ago at={session.seen_at} />
          </td>
          {onEnd && (
            <td class="end">
              {!session.current && (
                <Button
                  isSmall
                  label={`End the session at ${session.address}`}
                  onClick={() => onEnd(session)}
                >
                  End
                </Button>
              )}
            </td>
          )}
        </tr>
      ))}
    </ListTable>
  );
}

/** The names that agents have besides those of what they imitate. */
const BROWSERS = [...['Edg', 'OPR', 'Firefox', 'HeadlessChrome', 'Chrome', 'Safari', 'curl', 'node']];
const SYSTEMS = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS X', 'Linux'];

function browserOf(agent: string | null): string {
  if (agent === null || agent === '') return 'Unknown';
  const browser = BROWSERS.find((name) => agent.includes(name));
  const system = SYSTEMS.find((name) => agent.includes(name));
  if (browser === undefined) return agent.slice(0, 80);
  return system === undefined ? browser : `${browser} on ${system}`;
}
