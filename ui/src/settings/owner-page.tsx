/** What can be set of a domain or a collection, for all endpoints in it: a part at a time, each with its address. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { type Result, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import type { PageProps } from '../base/lazy.js';
import { Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { Sections } from '../base/sections.js';
import { Visible } from '../base/visible.js';
import { WhoChanged } from '../base/who-changed.js';
import { CertificateSection } from './certificate-section.js';
import { CollectionGeneral, DomainGeneral } from './general-sections.js';
import { KeysSection } from './keys-section.js';
import type { Owner } from './owner.js';
import { PoliciesSection } from './policies-section.js';
import { SecretsSection } from './secrets-section.js';
import { VariablesSection } from './variables-section.js';

type SharedOwner = Omit<Owner, 'kind'> & { readonly kind: 'domains' | 'collections' };

const KINDS = { domains: 'domain', collections: 'collection' } as const;
const mayReadVariables = () => may('variables:read') || may('secrets:read');

export function DomainPage({ params: { id = '', section } }: PageProps) {
  const result = useQuery('GET /api/domains/{id}', { params: { id } });
  return (
    <OwnerPage
      owner={{ kind: 'domains', id }}
      section={section}
      result={result}
      name={result.data?.host ?? 'Domain'}
      crumbs={<Link href="/ui/endpoints">Endpoints</Link>}
      general={(domain) => (
        <>
          <DomainGeneral domain={domain} />
          <CertificateSection domain={domain} />
        </>
      )}
    />
  );
}

export function CollectionPage({ params: { id = '', section } }: PageProps) {
  const result = useQuery('GET /api/collections/{id}', { params: { id } });
  const domainId = result.data?.domain_id;
  const { data: domain } = useQuery(
    'GET /api/domains/{id}',
    domainId === undefined || !may('domains:read') ? undefined : { params: { id: domainId } },
  );
  return (
    <OwnerPage
      owner={{ kind: 'collections', id }}
      section={section}
      result={result}
      name={result.data?.name ?? 'Collection'}
      crumbs={
        <>
          <Link href="/ui/endpoints">Endpoints</Link>
          {domain && (
            <>
              {' '}
              / <Link href={`/ui/domains/${domain.id}`}>{domain.host}</Link>
            </>
          )}
        </>
      }
      general={(collection) => <CollectionGeneral collection={collection} />}
    />
  );
}

interface OwnerPageProps<T> {
  readonly owner: SharedOwner;
  readonly section: string | undefined;
  readonly result: Result<T> & { readonly refresh: () => void };
  readonly name: string;
  readonly crumbs: ComponentChildren;
  readonly general: (loaded: T) => ComponentChildren;
}

function OwnerPage<T>({ owner, section, result, name, crumbs, general }: OwnerPageProps<T>) {
  const parts = [
    { name: 'general', label: 'General', isVisible: true },
    { name: 'variables', label: 'Variables and secrets', isVisible: mayReadVariables() },
    { name: 'policies', label: 'Policies', isVisible: true },
    { name: 'keys', label: 'Keys of callers', isVisible: owner.kind === 'domains' },
  ].filter(({ isVisible }) => isVisible);
  const current = parts.find((part) => part.name === section) ?? parts[0];
  return (
    <Page
      title={`Settings of ${name}`}
      heading={
        <>
          Settings of <Visible text={name} isOneLine />
        </>
      }
      crumbs={
        <>
          {crumbs}
          <WhoChanged kind={KINDS[owner.kind]} id={owner.id} />
        </>
      }
    >
      <Loaded
        result={result}
        lines={6}
        subject={{ kind: KINDS[owner.kind], list: '/ui/endpoints', listName: 'All endpoints' }}
      >
        {(loaded) => (
          <Sections
            label={`Settings of ${name}`}
            sections={parts.map((part) => ({
              to: `/ui/${owner.kind}/${owner.id}/${part.name}`,
              label: part.label,
              isCurrent: part === current,
            }))}
          >
            {current?.name === 'general' && general(loaded)}
            {current?.name === 'variables' && (
              <>
                <VariablesSection key={owner.id} owner={owner} />
                <SecretsSection key={owner.id} owner={owner} />
              </>
            )}
            {current?.name === 'policies' && <PoliciesSection key={owner.id} owner={owner} />}
            {current?.name === 'keys' && <KeysSection key={owner.id} domainId={owner.id} />}
          </Sections>
        )}
      </Loaded>
    </Page>
  );
}
