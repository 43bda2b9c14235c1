/**
 * Names of the secret settings of service configs, for the logs of all processes. Separate from the schemas, which mark
 * the same settings, because these take 14 MB of memory and most processes do not need them.
 */
export const SECRET_SETTINGS: ReadonlySet<string> = new Set(['password', 'private_key', 'secret_key', 'uri']);
