/** Names of environment variables that authors can set for their handlers. */

const PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MAX_LENGTH = 128;

/**
 * Reserved prefixes: of the gateway, of the loader and the C library (glibc, too, ignores such variables in programs
 * with more privileges), and of bash.
 */
const PREFIXES = ['EDGE_', 'LD_', 'MALLOC_', 'GLIBC_', 'BASH_'];
/**
 * Names that the gateway sets or keeps away, that glibc does not trust (sysdeps/generic/unsecvars.h), and that change
 * what a shell does: programs that confine a handler start with its environment.
 */
const NAMES = new Set([
  ...['PATH', 'HOME', 'TMPDIR'],
  ...['GCONV_PATH', 'GETCONF_DIR', 'HOSTALIASES', 'LOCALDOMAIN', 'LOCPATH', 'NIS_PATH', 'NLSPATH'],
  ...['RESOLV_HOST_CONF', 'RES_OPTIONS', 'TZDIR'],
  ...['ENV', 'IFS', 'SHELLOPTS', 'BASHOPTS', 'CDPATH', 'GLOBIGNORE', 'PS0', 'PS1', 'PS2', 'PS4'],
  ...['PWD', 'OLDPWD', 'SHLVL', 'PPID', 'UID', 'EUID', 'OPTIND', 'LINENO', '_'],
  // Objects of JavaScript lose a member of this name.
  '__proto__',
]);

/** The same as a regular expression, for the description of the API. */
export const VARIABLE_NAME = `^(?!${PREFIXES.join('|')})(?!(${[...NAMES].join('|')})$)[A-Za-z_][A-Za-z0-9_]*$`;
export const VARIABLE_NAME_LENGTH = MAX_LENGTH;

/** Why a name is not accepted; undefined when it is. */
export function problemOfVariableName(name: string): string | undefined {
  if (!PATTERN.test(name))
    return 'must begin with a letter or "_", and have letters, digits and "_" only, such as DATABASE_NAME';
  if (name.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  const prefix = PREFIXES.find((reserved) => name.startsWith(reserved));
  if (prefix !== undefined) return `must not begin with ${prefix}: such names are reserved; take another one`;
  if (NAMES.has(name)) return 'is reserved; take another one';
  return undefined;
}
