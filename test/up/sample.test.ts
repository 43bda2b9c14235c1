/** The client with which `npm run up` deploys its sample. */
import { createServer } from 'node:http';
import { expect } from 'chai';
import { ApiClient } from '../../src/up/sample.js';
import { freePort } from '../support/ports.js';

describe('the client of the management API', () => {
  it('repeats a failed GET until the restarted process answers, but no other call', async () => {
    const port = await freePort();
    const api = new ApiClient(`http://127.0.0.1:${port}`, undefined);
    const refused = await api.call('POST', '/api/domains', {}).catch(String);
    expect(refused).to.match(/POST \/api\/domains: no answer \(.*ECONNREFUSED/);

    const answer = api.get('/api/health');
    let count = 0;
    const server = createServer((_request, response) => {
      if (++count === 1) response.destroy();
      else response.writeHead(count === 2 ? 503 : 200).end(JSON.stringify({ ok: count > 2, data: 'health' }));
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    try {
      expect(await answer).to.equal('health');
      expect(count).to.equal(3);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
