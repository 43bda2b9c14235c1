/**
 * How cargo gets crates of git servers and registries, and is let in where these want to know who asks. It is told by
 * its environment, only while it downloads, outside the sandbox: builds see neither that environment nor the files of
 * that cargo.
 */

/** What a place wants to know. */
export interface CrateCredential {
  /** The index of a registry, which begins with `sparse+`; else the origin of git repositories. */
  readonly place: string;
  /** A token; of git, `user:password`, too. */
  readonly secret: string;
}

/** Any user will do where a token is the password. */
const ANY_USER = 'git';

/** For each download: whatever repositories name, cargo gets it over the network only. */
export function credentialEnvironment(credentials: readonly CrateCredential[]): Record<string, string> {
  const isRegistry = ({ place }: CrateCredential) => place.startsWith('sparse+');
  const registries = credentials.filter(isRegistry).flatMap(({ place, secret }, at) => {
    const name = `CARGO_REGISTRIES_SOURCE${at}`;
    return [
      [`${name}_INDEX`, place],
      [`${name}_TOKEN`, secret],
      [`${name}_CREDENTIAL_PROVIDER`, 'cargo:token'],
    ];
  });
  const git = gitEnvironment(credentials.filter((one) => !isRegistry(one)));
  return { ...(Object.fromEntries(registries) as Record<string, string>), ...git };
}

/** Only git itself, and not the one in cargo, takes headers: https://git-scm.com/docs/git-config, `http.extraHeader`. */
function gitEnvironment(credentials: readonly CrateCredential[]): Record<string, string> {
  const settings = [
    // Another host must not get the header.
    ['http.followRedirects', 'false'],
    ...credentials.map(({ place, secret }) => {
      const user = secret.includes(':') ? secret : `${ANY_USER}:${secret}`;
      const basic = Buffer.from(user).toString('base64');
      return [`http.${place}/.extraHeader`, `Authorization: Basic ${basic}`];
    }),
  ];
  return {
    CARGO_NET_GIT_FETCH_WITH_CLI: 'true',
    GIT_TERMINAL_PROMPT: '0',
    // No files of this machine, and no keys of its user.
    GIT_ALLOW_PROTOCOL: 'http:https',
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key = '', value = ''], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}
