import { isAbsolute } from 'node:path';
import { expect } from 'chai';
import { ConfigError, loadConfig, loadProcessConfig, toolEnvironment } from '../src/config.js';

describe('configuration', () => {
  const problem = (
    environment: Record<string, string>,
    load: (from: typeof environment) => unknown = loadConfig,
  ) => {
    try {
      load(environment);
    } catch (error) {
      expect(error).to.be.instanceOf(ConfigError);
      return (error as Error).message;
    }
    return undefined;
  };

  it('has a default for every setting but the database', () => {
    const config = loadConfig({});
    expect(config).to.include({ HOST: '127.0.0.1', PORT: 8081, GATEWAY_PORT: 8080, LOG_LEVEL: 'info' });
    expect(isAbsolute(config.DATA_DIR)).to.equal(true);
    expect(problem({}, loadProcessConfig)).to.match(/^DATABASE_URL: is not set.*npm run up/);
    expect(loadProcessConfig({ DATABASE_URL: 'postgres://x' })).to.include({ DATABASE_URL: 'postgres://x' });
  });

  it('reads an empty environment variable as one that is not set', () => {
    expect(loadConfig({ PORT: '', API_KEY: '', LOG_LEVEL: '' })).to.include({
      PORT: 8081,
      API_KEY: undefined,
      LOG_LEVEL: 'info',
    });
  });

  it('reads settings from environment variables', () => {
    const config = loadConfig({
      PORT: '0',
      LOG_LEVEL: 'debug',
      HANDLER_MEMORY_MB: '512',
      METRICS_PORT: '9100',
    });
    expect(config).to.include({ PORT: 0, LOG_LEVEL: 'debug', HANDLER_MEMORY_MB: 512, METRICS_PORT: 9100 });
  });

  it('takes less time for periodic work, and never so little that it is all that processes do', () => {
    expect(loadConfig({})).to.include({ PERIODIC_WORK_PERCENT: 100 });
    expect(loadConfig({ PERIODIC_WORK_PERCENT: '10' })).to.include({ PERIODIC_WORK_PERCENT: 10 });
    for (const percent of ['9', '101'])
      expect(problem({ PERIODIC_WORK_PERCENT: percent })).to.match(
        /^PERIODIC_WORK_PERCENT: must be a whole number from 10 to 100/,
      );
  });

  it('accepts an ACME server only over TLS, and only with a TLS_PORT for its certificates', () => {
    const directory = 'https://acme.example/directory';
    expect(loadConfig({})).to.include({ ACME_DIRECTORY_URL: undefined, ACME_CHALLENGE: 'http-01' });
    const set = {
      ACME_DIRECTORY_URL: directory,
      ACME_EMAIL: 'ada@example.com',
      ACME_CHALLENGE: 'tls-alpn-01',
    };
    expect(loadConfig({ ...set, TLS_PORT: '443' })).to.include(set);
    expect(problem(set)).to.equal('ACME_DIRECTORY_URL: needs TLS_PORT, where certificates are shown.');
    for (const wrong of ['http://acme.example', 'acme.example', 'https://user@acme.example/'])
      expect(problem({ ACME_DIRECTORY_URL: wrong, TLS_PORT: '443' }), wrong).to.match(
        /^ACME_DIRECTORY_URL: must be a URL such as https:/,
      );
    for (const wrong of ['ada', 'ada@example.com,bob@example.com', 'ada@example.com?cc=bob'])
      expect(problem({ ACME_EMAIL: wrong }), wrong).to.match(/^ACME_EMAIL: must be an e-mail address/);
    expect(problem({ ACME_CHALLENGE: 'dns-01' })).to.match(/^ACME_CHALLENGE: /);
  });

  it('reads addresses and networks of TRUSTED_PROXIES, and names the one that is neither', () => {
    expect(loadConfig({}).TRUSTED_PROXIES).to.deep.equal([]);
    expect(
      loadConfig({ TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.1,::1 ,2001:db8::/32,' }).TRUSTED_PROXIES,
    ).to.deep.equal(['10.0.0.0/8', '192.0.2.1/32', '::1/128', '2001:db8::/32']);
    for (const wrong of [
      '10.0.0.0/33',
      '10.0.0/8',
      'proxy',
      '10.0.0.0/',
      '10.0.0.0/8/8',
      'fe80::1%eth0',
      '::/129',
      '/8',
    ])
      expect(problem({ TRUSTED_PROXIES: `10.0.0.1,${wrong}` }), wrong).to.equal(
        `TRUSTED_PROXIES: must be IP addresses and networks (10.0.0.0/8), which "${wrong}" is not`,
      );
  });

  it('names every invalid setting, and the values that it accepts', () => {
    const message = problem({
      PORT: '70000',
      LOG_LEVEL: 'loud',
      COMPILE_TIMEOUT_MS: '2s',
      METRICS_PORT: '-1',
    });
    expect(message?.split('\n')).to.deep.equal([
      'PORT: must be a whole number from 0 to 65535, not "70000"',
      'LOG_LEVEL: must be one of fatal, error, warn, info, debug, trace, silent, not "loud"',
      'METRICS_PORT: must be a whole number from 0 to 65535, not "-1"',
      'COMPILE_TIMEOUT_MS: must be a whole number from 100 to 3600000, not "2s"',
    ]);
    for (const value of ['1e3', '0x10', ' 80', '80 ', '8.5', '+80', 'NaN'])
      expect(problem({ PORT: value }), value).to.match(/^PORT: must be a whole number/);
  });

  it('gives build tools only the environment variables that they need', () => {
    const passed = {
      PATH: '/bin',
      HOME: '/root',
      CARGO_HOME: '/c',
      RUSTUP_HOME: '/r',
      https_proxy: 'p',
      SSL_CERT_FILE: 'f',
    };
    const kept = { CARGO_NET_OFFLINE: 'true', CARGO_HTTP_TIMEOUT: '30' };
    const secret = {
      DATABASE_URL: 'postgres://u:p@h/d',
      API_KEY: 'k',
      SECRET_KEY: 's',
      S3_SECRET_KEY: 's',
      REDIS_URL: 'redis://:p@h',
      CARGO_REGISTRY_TOKEN: 't',
      CARGO_REGISTRIES_OURS_TOKEN: 't',
      AWS_SECRET_ACCESS_KEY: 'a',
      NODE_OPTIONS: '--inspect',
      LD_PRELOAD: 'x',
      RUSTC_WRAPPER: 'x',
    };
    expect(toolEnvironment({ ...passed, ...kept, ...secret })).to.deep.equal({ ...passed, ...kept });
  });
});
