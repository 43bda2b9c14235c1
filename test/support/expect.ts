/** Expected shapes of API responses. */
import { expect } from 'chai';
import type { ErrorCode } from '../../src/errors.js';
import { ERROR_CATALOGUE } from '../../src/errors.js';
import type { HttpResponse } from './client.js';

/** A success in the envelope; returns its data. */
export function expectData<T>(response: HttpResponse, status = 200): T {
  expect(response.status, JSON.stringify(response.body)).to.equal(status);
  const body = response.body as { ok: true; data: T };
  expect(body.ok).to.equal(true);
  expect(body).to.have.property('data');
  return body.data;
}

/** A failure in the envelope, with the status its code is documented with. */
export function expectFailure(response: HttpResponse, code: ErrorCode, message: RegExp = /./): void {
  expect(response.body, JSON.stringify(response.body)).to.include({ ok: false, code });
  expect(response.status).to.equal(ERROR_CATALOGUE[code].status);
  expect((response.body as { error: unknown }).error)
    .to.be.a('string')
    .and.match(message);
}

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** An unknown id. */
export const NO_ID = '00000000-0000-4000-8000-000000000000';
