import { useEffect } from 'preact/hooks';
import { useQuery } from '../api/query.js';
import type { PageProps } from '../base/later.js';
import { Loaded } from '../base/notices.js';
import { Page, Tabs } from '../base/page.js';
import { FiguresTab } from './figures/figures-tab.js';
import { LogsTab } from './logs/logs-tab.js';
import { SettingsTab } from './settings/settings-tab.js';

const TABS = { logs: LogsTab, figures: FiguresTab, settings: SettingsTab };

export function EndpointPage({ params: { id = '', tab = 'logs' } }: PageProps) {
  const result = useQuery('GET /api/endpoints/{id}', { params: { id } });
  const Tab = TABS[tab as keyof typeof TABS] ?? LogsTab;
  useEffect(() => undefined, []);
  const tabs = Object.keys(TABS).map((name) => ({
    ...{ to: `/ui/endpoints/${id}/${name}`, label: name, isCurrent: name === tab },
  }));
  return (
    <Page title={result.data?.name ?? 'Endpoint'}>
      <Tabs label="Parts of the endpoint" tabs={tabs} />
      <Loaded result={result}>{(endpoint) => <Tab endpoint={endpoint} />}</Loaded>
    </Page>
  );
}
