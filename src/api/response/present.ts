/** Converts rows to responses. */
import type { Static, TObject } from '@sinclair/typebox';

/** The members of a view; those of type string may be times. */
type Presentable<View> = {
  readonly [Key in keyof View]: View[Key] | (string extends View[Key] ? Date : never);
};

/** Creates a function that picks the members of a view from a row. Times become ISO 8601. */
export function presenter<View extends TObject>({
  properties,
}: View): (row: Presentable<Static<View>>) => Static<View> {
  const names = Object.keys(properties);
  return (row) => {
    const values = row as Readonly<Record<string, unknown>>;
    const shown: Record<string, unknown> = {};
    for (const name of names) {
      const value = values[name];
      shown[name] = value instanceof Date ? value.toISOString() : value;
    }
    return shown as Static<View>;
  };
}
