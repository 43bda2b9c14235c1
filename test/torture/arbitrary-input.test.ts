import { describeArbitraryInput } from '../support/arbitrary-input.js';

describeArbitraryInput(100);
