import { ApiError } from '../api/client.js';

/**
 * What the API says of a field, without its place; undefined when it is about something else.
 * @param place such as `body.name`; what is said of its members counts, too, and keeps the rest of their place
 */
export function problemAt(error: ApiError | undefined, place: string): string | undefined {
  if (!error?.message.startsWith(place)) return undefined;
  const rest = error.message.slice(place.length);
  if (rest.startsWith(': ')) return sentence(rest.slice(2));
  return rest.startsWith('.') ? sentence(rest.slice(1)) : undefined;
}

/** Whether the message begins with the place of one of these fields, where it is shown. */
export function isAtOneOf(error: ApiError | undefined, places: readonly string[]): boolean {
  return places.some((place) => problemAt(error, place) !== undefined);
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What a form itself has against a field, as the API would say it. */
export function invalidAt(place: string, message: string): ApiError {
  return new ApiError(`${place}: ${message}`, 'invalid_input', 0, undefined, undefined, []);
}
