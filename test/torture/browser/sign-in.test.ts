/** Sign-in with OpenID Connect in a real browser: the provider is another site, the cookie of a session is Strict. */
import { expect } from 'chai';
import { loadConfig } from '../../../src/config.js';
import { ADMIN, addUser } from '../../support/access.js';
import { startApi, type TestApi } from '../../support/api.js';
import { openUntil } from '../../support/chromium.js';
import { eventually } from '../../support/eventually.js';
import {
  CLIENT_ID,
  CLIENT_SECRET,
  startProvider,
  type TestProvider,
} from '../../support/identity-provider.js';
import { freePort } from '../../support/ports.js';

describe('sign-in in a browser', () => {
  let api: TestApi;
  let provider: TestProvider;

  before(async () => {
    const PORT = await freePort();
    const PUBLIC_URL = `http://127.0.0.1:${PORT}`;
    const redirectUri = `${PUBLIC_URL}/api/session/oidc/callback`;
    provider = await startProvider({ redirectUri, isSite: true });
    const { OIDC_ROLES } = loadConfig({ OIDC_ROLES: '{"everybody": "viewer"}' });
    const client = { OIDC_CLIENT_ID: CLIENT_ID, OIDC_CLIENT_SECRET: CLIENT_SECRET };
    const config = { PORT, PUBLIC_URL, OIDC_ISSUER: provider.issuer, OIDC_ROLES, ...client };
    api = await startApi({ config });
    await addUser(api, {}, { email: ADMIN, role: 'admin' });
    provider.people.set('ada', { email: 'ada@example.test', roles: 'everybody' });
    provider.person = 'ada';
  });
  after(async () => {
    await api.close();
    await provider.close();
  });

  it('a sign-in with OpenID Connect leads from the provider to a page that needs a session', async () => {
    const page = () =>
      eventually(() => {
        const line = api.logged.lines.find(
          ({ msg, route }) => msg === 'request' && route === '/api/sessions',
        );
        expect(line).not.to.equal(undefined);
        return line;
      });
    const address = `${api.url}/api/session/oidc?return_to=${encodeURIComponent('/api/sessions')}`;
    expect(await openUntil(address, page())).to.include({ status: 200 });
  });
});
