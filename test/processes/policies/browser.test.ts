/** What a real browser makes of the policy cors: a page of another origin that sends JSON and credentials. */
import { expect } from 'chai';
import { type Page, servePage } from '../../support/browser.js';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';

describe('a browser with a page of another origin', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  let page: Page;
  before(async () => {
    one = await startPolicyStack();
    // Another origin of the same site, so that its cookies are sent.
    page = await servePage(`app.${one.host}`);
  });
  after(async () => {
    await page?.close();
    await one?.close();
  });

  /** Gets a cookie from the endpoint, and then sends JSON with it. */
  const script = () => {
    const url = `http://${one.host}:${new URL(one.stack.gatewayUrl).port}/shown`;
    return `
      await fetch('${url}?header-Set-Cookie=session%3D1', { credentials: 'include' });
      const answer = await fetch('${url}?header-X-Shown=yes', {
        method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body: '{"a": 1}',
      });
      return { status: answer.status, shown: answer.headers.get('x-shown'), ...(await answer.json()) };`;
  };

  it('sends JSON with credentials, and reads the answer, where the policy allows its origin', async () => {
    await one.set(one.domain, {
      cors: { origins: [page.origin], headers: ['content-type'], expose: ['X-Shown'], credentials: true },
    });
    const shown = (await page.run(script())) as Record<string, unknown> & { headers: Record<string, string> };
    expect(shown).to.include({ status: 200, shown: 'yes', method: 'POST', bytes: 8 });
    const sent = Object.fromEntries(
      Object.entries(shown.headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    expect(sent).to.include({ origin: page.origin, cookie: 'session=1', 'content-type': 'application/json' });
  });

  it('is refused by the browser without the policy, and for another origin', async () => {
    for (const policies of [
      null,
      { cors: { origins: ['http://other.policies.example'], credentials: true } },
    ]) {
      await one.set(one.domain, policies);
      const error = await page.run(script()).then(
        () => undefined,
        (thrown: unknown) => String(thrown),
      );
      expect(error).to.match(/The script failed: TypeError: Failed to fetch/);
    }
  });
});
