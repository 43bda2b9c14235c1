/** Whom TRUSTED_PROXIES lets say who the client is; `rust/front/src/client_ip.rs` has the same cases. */
import { expect } from 'chai';
import fc from 'fast-check';
import { TrustedProxies } from '../../src/http/trusted-proxies.js';

describe('clients behind trusted proxies', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '2001:db8:1::/48']);
  const client = (headers: readonly (readonly [string, string])[], peer = '10.0.0.1') => {
    const { address, scheme } = proxies.clientOf(peer, headers.flat());
    return [address, scheme];
  };

  it('takes the peer as the client unless it is a trusted proxy', () => {
    const headers = [
      ['Forwarded', 'for=1.2.3.4;proto=https'],
      ['X-Forwarded-For', '1.2.3.4'],
      ['X-Forwarded-Proto', 'https'],
    ] as const;
    expect(client(headers, '9.9.9.9')).to.deep.equal(['9.9.9.9', 'http']);
    expect(client(headers, '::ffff:9.9.9.9')).to.deep.equal(['9.9.9.9', 'http']);
    expect(client(headers, '::ffff:10.0.0.9')).to.deep.equal(['1.2.3.4', 'https']);
    expect(client(headers, '2001:db8:1::7')).to.deep.equal(['1.2.3.4', 'https']);
    expect(client([])).to.deep.equal(['10.0.0.1', 'http']);
    expect(proxies.clientOf(undefined, headers.flat())).to.deep.equal({ address: 'unknown', scheme: 'http' });
    expect(new TrustedProxies([]).clientOf('10.0.0.1', headers.flat()).address).to.equal('10.0.0.1');
  });

  it('takes the last address that is not of a trusted proxy as the client', () => {
    const of = (value: string) => client([['x-forwarded-for', value]])[0];
    for (const [value, address] of [
      ['1.2.3.4', '1.2.3.4'],
      ['6.6.6.6, 1.2.3.4', '1.2.3.4'],
      ['6.6.6.6,1.2.3.4 ,\t10.1.1.1,, 10.2.2.2,', '1.2.3.4'],
      ['10.3.3.3, 10.2.2.2', '10.3.3.3'],
      ['1.2.3.4:5678, 10.1.1.1:90', '1.2.3.4'],
      ['2001:db8::1, [2001:db8:1::9]:443, 2001:db8:1::8', '2001:db8::1'],
      ['::ffff:1.2.3.4, ::ffff:10.1.1.1', '1.2.3.4'],
      ['1.2.3.4, ::10.1.1.1', '::a01:101'],
    ] as const)
      expect(of(value), value).to.equal(address);
    const unreadable = [
      'unknown',
      '_hidden',
      '1.2.3',
      '1.2.3.4.5',
      '01.2.3.4',
      '[1.2.3.4]',
      'fe80::1%eth0',
      '[::1',
    ];
    for (const end of [...unreadable, 'a b', '0x7f.1', '[fe80::1%eth0]']) {
      expect(of(`1.2.3.4, ${end}, 10.1.1.1`), end).to.equal('10.1.1.1');
      expect(of(`1.2.3.4, ${end}`), end).to.equal('10.0.0.1');
    }
    expect(
      client([
        ['X-Forwarded-For', '6.6.6.6, 1.2.3.4'],
        ['Via', 'X-Forwarded-For'],
        ['X-Forwarded-For', '10.1.1.1'],
      ])[0],
    ).to.equal('1.2.3.4');
  });

  it('reads the client from Forwarded where there is no X-Forwarded-For', () => {
    const of = (value: string) => client([['forwarded', value]]);
    for (const [value, ...expected] of [
      ['for=1.2.3.4', '1.2.3.4', 'http'],
      ['For=1.2.3.4;Proto=HTTPS;by=_me', '1.2.3.4', 'https'],
      ['host="a,b;for=6.6.6.6" ; proto=https ; for="1.2.3.4:_p"', '1.2.3.4', 'https'],
      ['for="[2001:db8::1]:4711"', '2001:db8::1', 'http'],
      ['for="[2001:db8::1]"', '2001:db8::1', 'http'],
      ['for="1.2\\.3.4";proto="https"', '1.2.3.4', 'https'],
      ['for=6.6.6.6;proto=http, for=1.2.3.4;proto=https, for=10.1.1.1;proto=http', '1.2.3.4', 'https'],
      ['for=10.2.2.2;proto=https, for=10.1.1.1;proto=http', '10.2.2.2', 'https'],
      [',', '10.0.0.1', 'http'],
      ['proto=https, for=10.1.1.1;proto=http', '10.1.1.1', 'https'],
      ['for=6.6.6.6, for=unknown;proto=https', '10.0.0.1', 'https'],
    ] as const)
      expect(of(value), value).to.deep.equal(expected);
    expect(
      client([
        ['Forwarded', 'for=6.6.6.6;proto=https'],
        ['X-Forwarded-For', '1.2.3.4'],
      ]),
    ).to.deep.equal(['1.2.3.4', 'http']);
  });

  it('reads the scheme of the client from X-Forwarded-Proto', () => {
    const of = (addresses: string, schemes: string) =>
      client([
        ['X-Forwarded-For', addresses],
        ['X-Forwarded-Proto', schemes],
      ]);
    for (const [addresses, schemes, ...expected] of [
      ['1.2.3.4', 'HTTPS', '1.2.3.4', 'https'],
      ['1.2.3.4', 'wss', '1.2.3.4', 'http'],
      ['', 'http, https', '10.0.0.1', 'https'],
      ['6.6.6.6, 1.2.3.4', 'https, http', '1.2.3.4', 'http'],
      ['1.2.3.4, 10.1.1.1', 'https, http', '1.2.3.4', 'https'],
      ['6.6.6.6, 1.2.3.4, 10.1.1.1', 'http, https, http', '1.2.3.4', 'https'],
      ['6.6.6.6, 1.2.3.4, 10.1.1.1', 'https', '1.2.3.4', 'https'],
    ] as const)
      expect(of(addresses, schemes), `${addresses} ${schemes}`).to.deep.equal(expected);
  });

  it('trusts proxies of IPv4-mapped networks and of networks of all addresses', () => {
    const trusts = (network: string, peer: string) =>
      new TrustedProxies([network]).clientOf(peer, ['X-Forwarded-For', '1.2.3.4']).address === '1.2.3.4';
    expect(trusts('::ffff:10.0.0.0/104', '10.9.9.9')).to.equal(true);
    expect(trusts('0.0.0.0/0', '9.9.9.9') && !trusts('0.0.0.0/0', '::1')).to.equal(true);
    expect(trusts('::/0', '::1') && !trusts('::/0', '9.9.9.9')).to.equal(true);
    expect(trusts('fd00::/8', 'fdff::1') && !trusts('fd00::/8', 'fe00::1')).to.equal(true);
  });

  it('identifies clients whatever they have sent in front of what the proxy adds', () => {
    const pieces = [
      '"',
      '\\',
      ',',
      ';',
      '=',
      ' ',
      'for=',
      'proto=',
      '10.0.0.1',
      '6.6.6.6',
      '[',
      ']',
      ':',
      '::1',
      '\xa0',
    ];
    const hostile = fc.array(fc.constantFrom(...pieces), { maxLength: 20 }).map((some) => some.join(''));
    const inner = fc.constantFrom('', ', for=10.1.1.1;proto=http', ', for="[2001:db8:1::1]:80"');
    fc.assert(
      fc.property(hostile, inner, (sent, hops) => {
        const forwarded = `${sent}, for=1.2.3.4;proto=https${hops}`;
        expect(client([['Forwarded', forwarded]])).to.deep.equal(['1.2.3.4', 'https']);
        expect(client([['X-Forwarded-For', `${sent}, 1.2.3.4`]])[0]).to.equal('1.2.3.4');
      }),
    );
  });
});
