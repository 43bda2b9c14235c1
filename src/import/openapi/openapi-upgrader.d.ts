/** What is used of the package: its own types bring along those of all versions of OpenAPI. */
declare module '@scalar/openapi-upgrader/2.0-to-3.0' {
  /** Changes the document, and returns the result. */
  export function upgradeFromTwoToThree(document: Readonly<Record<string, unknown>>): unknown;
}
