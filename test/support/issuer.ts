/** An issuer of tokens, with the library `jose`, which publishes its keys over HTTP. */
import { KeyObject, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';

export const ISSUER = 'https://issuer.example';
export const AUDIENCE = 'orders';

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];

export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly jwk: JWK;
  readonly privateKey: PrivateKey;
}

export async function newKey(alg: string, kid: string): Promise<IssuerKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

/** A token that is valid unless it is changed. */
export function signToken(
  key: IssuerKey,
  claims: Readonly<Record<string, unknown>> = {},
  head: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'ada',
    iat: now,
    exp: now + 300,
    ...claims,
  } as JWTPayload)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...head })
    .sign(key.privateKey);
}

/** Signs any text with a key of RSA, so that only what it says can be wrong. */
export function signText(key: IssuerKey, text: string, hash = 'sha256'): string {
  const signature = sign(hash, Buffer.from(text), KeyObject.from(key.privateKey));
  return `${text}.${signature.toString('base64url')}`;
}

export interface KeyServer {
  readonly url: string;
  keys: readonly JWK[];
  /** How often it was asked. */
  readonly asked: number;
  /** Answers with this status instead. */
  failWith: number | undefined;
  close(): Promise<void>;
}

export async function serveKeys(keys: readonly JWK[]): Promise<KeyServer> {
  const state = { keys, asked: 0, failWith: undefined as number | undefined };
  const server = createServer((_request, response) => {
    state.asked++;
    const location = { Location: 'http://169.254.169.254/' };
    if (state.failWith !== undefined) response.writeHead(state.failWith, location).end();
    else
      response
        .writeHead(200, { 'Content-Type': 'application/jwk-set+json' })
        .end(JSON.stringify({ keys: state.keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}/jwks.json`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}
