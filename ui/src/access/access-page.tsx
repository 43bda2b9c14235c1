/** Who may do what, and who has done what. */
import { may, me } from '../api/session.js';
import type { PageProps } from '../base/lazy.js';
import { Empty } from '../base/notices.js';
import { Page, Tabs } from '../base/page.js';
import { AccountTab } from './account-tab.js';
import { AuditTab } from './audit-tab.js';
import { SessionsTab } from './sessions-tab.js';
import { TokensTab } from './tokens-tab.js';
import { UsersTab } from './users-tab.js';

const TABS = [
  { name: 'users', label: 'Users', content: UsersTab, isVisible: () => may('users:read') },
  { name: 'tokens', label: 'Tokens', content: TokensTab, isVisible: () => may('tokens:read') },
  { name: 'sessions', label: 'Sessions', content: SessionsTab, isVisible: isUser },
  { name: 'audit', label: 'Audit', content: AuditTab, isVisible: () => may('audit:read') },
  { name: 'account', label: 'Account', content: AccountTab, isVisible: isUser },
];

export function AccessPage({ params }: PageProps) {
  const tabs = TABS.filter(({ isVisible }) => isVisible());
  const current = params['tab'] === undefined ? tabs[0] : tabs.find(({ name }) => name === params['tab']);
  const Content = current?.content;
  return (
    <Page title={current ? `Access: ${current.label}` : 'Access'} heading="Access">
      <Tabs
        label="Access"
        tabs={tabs.map(({ name, label }) => ({
          ...{ to: `/ui/access/${name}`, label, isCurrent: name === current?.name },
        }))}
      />
      {Content ? <Content /> : <Empty title="This is not here, or you may not see it" />}
    </Page>
  );
}

function isUser(): boolean {
  return me.value?.user !== null && me.value?.user !== undefined;
}
