/** Makes the installation what files say: what that would change first, and what was applied before. */
import { may } from '../api/session.js';
import { Empty } from '../base/notices.js';
import { Page } from '../base/page.js';
import { ApplyForm } from './apply-form.js';
import { History } from './history.js';

export function ApplyPage() {
  if (!may('endpoints:read'))
    return (
      <Page title="Apply">
        <Empty title="You may not see what was applied">
          <p>An admin can give you the permission endpoints:read.</p>
        </Empty>
      </Page>
    );
  return (
    <Page title="Apply">
      {may('endpoints:write') && <ApplyForm />}
      <History />
    </Page>
  );
}
