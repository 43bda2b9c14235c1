/** The policies of a domain, a collection or an endpoint: what is set there, and for an endpoint what is in force. */
import { useState } from 'preact/hooks';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Button } from '../base/controls.js';
import { Loaded } from '../base/notices.js';
import { Badge } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { PoliciesInForce } from '../generated/routes.js';
import type { Owner } from './owner.js';
import { PolicyEditor } from './policy-editor.js';
import { POLICY_HINTS, type PolicyName } from './policy-hints.js';
import { wordsOf } from './policy-words.js';
import { Section } from './section.js';

const NAMES = Object.keys(POLICY_HINTS) as PolicyName[];
const SOURCES = { domain: 'Of its domain', collection: 'Of its collection', endpoint: 'Set here' } as const;

/** What is set, by name; `null` is switched off. */
export type OwnPolicies = Readonly<Partial<Record<PolicyName, unknown>>>;

export function PoliciesSection({ owner }: { readonly owner: Owner }) {
  const own = useQuery(`GET /api/${owner.kind}/{id}`, { params: { id: owner.id } });
  const isEndpoint = owner.kind === 'endpoints';
  const inForce = useQuery(
    'GET /api/endpoints/{id}/policies',
    isEndpoint ? { params: { id: owner.id } } : undefined,
  );
  return (
    <Section
      title="Policies"
      hint={
        isEndpoint
          ? 'What the gateway does with requests and answers. Those set here count before those of the collection and the domain.'
          : 'What the gateway does with requests and answers of all endpoints in it, unless they have their own.'
      }
    >
      {inForce.data?.problems.map((problem) => (
        <div key={problem} class="notice bad" role="alert">
          <Visible text={problem} />
        </div>
      ))}
      <Loaded result={own}>
        {({ policies }) => (
          <ul class="entries">
            {NAMES.map((name) => (
              <Policy
                key={name}
                owner={owner}
                name={name}
                own={(policies ?? {}) as OwnPolicies}
                inForce={inForce.data}
              />
            ))}
          </ul>
        )}
      </Loaded>
    </Section>
  );
}

interface PolicyProps {
  readonly owner: Owner;
  readonly name: PolicyName;
  readonly own: OwnPolicies;
  readonly inForce: PoliciesInForce | undefined;
}

function Policy({ owner, name, own, inForce }: PolicyProps) {
  const [isOpen, setOpen] = useState(false);
  const { title, hint } = POLICY_HINTS[name];
  const source = inForce?.sources[name]?.scope;
  const value = own[name] ?? (source === undefined ? undefined : inForce?.policies[name]);
  const mayEdit = may(`${owner.kind}:write`);
  return (
    <li class="policy">
      <div class="policy-head">
        <div>
          <h3>{title}</h3>
          <p class="small muted">{hint}</p>
          {value !== undefined && value !== null && (
            <p class="small policy-value">
              <Visible text={wordsOf(name, value)} isOneLine />
            </p>
          )}
        </div>
        <div class="actions">
          <PolicyState own={own} name={name} source={source} />
          {mayEdit && (
            <Button isSmall label={`${isOpen ? 'Close' : 'Edit'} ${title}`} onClick={() => setOpen(!isOpen)}>
              {isOpen ? 'Close' : 'Edit'}
            </Button>
          )}
        </div>
      </div>
      {isOpen && mayEdit && <PolicyEditor owner={owner} name={name} own={own} />}
    </li>
  );
}

interface PolicyStateProps {
  readonly own: OwnPolicies;
  readonly name: PolicyName;
  readonly source: keyof typeof SOURCES | undefined;
}

/** Whether it is in force, and where it is set. */
function PolicyState({ own, name, source }: PolicyStateProps) {
  if (own[name] === null) return <Badge tone="warn">Switched off here</Badge>;
  if (own[name] !== undefined) return <Badge tone="ok">Set here</Badge>;
  if (source !== undefined) return <Badge tone="ok">{SOURCES[source]}</Badge>;
  return <span class="small muted">Not set</span>;
}
