import { describeArbitraryInput } from '../support/arbitrary-input.js';

// More in test/torture.
describeArbitraryInput(25);
