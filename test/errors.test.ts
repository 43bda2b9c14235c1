import { expect } from 'chai';
import { AppError, ERROR_CATALOGUE, toError } from '../src/errors.js';

describe('the catalogue of errors', () => {
  it('has codes in one style, and statuses of failures', () => {
    for (const [code, { status }] of Object.entries(ERROR_CATALOGUE)) {
      expect(code).to.match(/^[a-z]+(_[a-z]+)*$/);
      expect(status).to.be.within(400, 599);
    }
  });

  it('gives errors their status', () => {
    expect(new AppError('host_taken', 'x').status).to.equal(409);
    expect(toError('text').message).to.equal('text');
  });
});
