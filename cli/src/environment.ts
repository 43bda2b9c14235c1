/** The only reader of the environment of this process. */
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A variable; an empty one is none. */
function variable(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** The gateway and the token that commands use instead of those of a context. */
export function givenAccess(): { readonly url: string | undefined; readonly token: string | undefined } {
  return { url: variable('EDGE_URL'), token: variable('EDGE_TOKEN') };
}

/** Where contexts are kept. */
export function configFolder(): string {
  return join(variable('XDG_CONFIG_HOME') ?? join(homedir(), '.config'), 'edge');
}

/** Whether requests may have to go through a proxy. */
export function hasProxy(): boolean {
  return ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].some((name) => variable(name));
}

/** Whether the terminal wants no colours: https://no-color.org. */
export function isWithoutColour(): boolean {
  return variable('NO_COLOR') !== undefined || variable('TERM') === 'dumb';
}

/** The name of whoever is at the machine. */
export function userName(): string {
  return variable('USER') ?? variable('LOGNAME') ?? 'me';
}

/** Where a gateway that is started on this machine has its API, as `npm run up` reads it. */
export function localPort(): number {
  return Number(variable('PORT') ?? 8081);
}
