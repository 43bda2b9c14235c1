/**
 * Keeps the heap of this process small, for one that reads much when it starts and does little afterwards: otherwise
 * V8 keeps for ever what it has once needed for short-lived objects. To be imported first.
 */
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--semi-space-growth-factor=1');
