import { expect } from 'chai';
import { AppError, toError } from '../src/errors.js';

describe('the catalogue of errors', () => {
  it('gives errors their status', () => {
    expect(new AppError('host_taken', 'x').status).to.equal(409);
    expect(toError('text').message).to.equal('text');
  });
});
