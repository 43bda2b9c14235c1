/** Dependencies of handlers in tests whose sets are prepared before the tests run. */

/** Two crates, one with features. */
export const TWO_CRATES = {
  regex: '1',
  chrono: { version: '0.4', features: ['serde'], 'default-features': false },
};

/** What records by way of `log`. */
export const TRACING = { tracing: { version: '0.1', features: ['log'] } };

/** A crate that is not built. */
export const OPTIONAL_CRATE = { itoa: { version: '1', optional: true } };
