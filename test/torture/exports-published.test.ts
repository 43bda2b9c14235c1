import { describePublished } from '../support/published-exports.js';

describePublished('off');
