/** Turns at lists with much code, large bodies or large policies: each has all of it in memory until it is sent. */
import { AnswerTurns } from './answer-turns.js';

/** Lists with more bytes take turns. */
const LARGE_BYTES = 2 * 1024 * 1024;
const LIST_TURNS = new AnswerTurns({ what: 'large lists', places: 1, beyond: 1 });

/** @param bytes of what in the list may be large */
export function turnsOfList(bytes: number): AnswerTurns | undefined {
  return bytes > LARGE_BYTES ? LIST_TURNS : undefined;
}
