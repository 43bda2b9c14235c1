/** The tabs of an endpoint, by what one may see. Their code comes when they are opened. */
import { may, type Permission } from '../api/session.js';

export type TabName = 'code' | 'try' | 'logs' | 'figures' | 'versions' | 'settings';

export interface Tab {
  /** The name in the address. */
  readonly name: TabName;
  readonly label: string;
  readonly needs: Permission;
}

const TABS: readonly Tab[] = [
  { name: 'code', label: 'Code', needs: 'endpoints:read' },
  { name: 'try', label: 'Try', needs: 'endpoints:deploy' },
  { name: 'logs', label: 'Logs', needs: 'logs:read' },
  { name: 'figures', label: 'Figures', needs: 'statistics:read' },
  { name: 'versions', label: 'Versions', needs: 'endpoints:read' },
  { name: 'settings', label: 'Settings', needs: 'endpoints:read' },
];

export function visibleTabs(): readonly Tab[] {
  return TABS.filter(({ needs }) => may(needs));
}
