/** References in policies to their own components. */

export const COMPONENTS = '#/components/schemas/';

/** The name of the component to which a reference leads; undefined when it leads elsewhere. */
export function componentName(target: string): string | undefined {
  if (!target.startsWith(COMPONENTS)) return undefined;
  try {
    const [name = ''] = decodeURIComponent(target.slice(COMPONENTS.length)).split('/', 1);
    return name.replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}
