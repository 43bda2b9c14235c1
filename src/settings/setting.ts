/** How settings are read: what each kind of environment variable takes. */
import { isIP } from 'node:net';

/** One environment variable. */
export interface Setting<T> {
  /** The default as the documentation shows it. */
  readonly shown: string;
  /** What it does, units included. */
  readonly description: string;
  /** Parses the text of the variable, undefined when it is unset or empty; throws with a reason. */
  readonly read: (text: string | undefined) => T;
}

export function text(shown: string, description: string): Setting<string | undefined> {
  return { shown, description, read: (value) => value };
}

export function textWithDefault(fallback: string, description: string): Setting<string> {
  return { shown: `\`${fallback}\``, description, read: (value) => value ?? fallback };
}

export function integer(
  fallback: number,
  min: number,
  max: number,
  description: string,
  shown = String(fallback),
): Setting<number> {
  return {
    shown,
    description,
    read: (value) => {
      if (value === undefined) return fallback;
      const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
      if (!(number >= min && number <= max))
        throw new Error(`must be a whole number from ${min} to ${max}, not "${value}"`);
      return number;
    },
  };
}

/** An address of a web server. */
export function webAddress(
  description: string,
  example = 'http://localhost:4318',
): Setting<string | undefined> {
  return {
    shown: 'none',
    description,
    read: (value) => {
      if (value === undefined) return undefined;
      const url = URL.canParse(value) ? new URL(value) : undefined;
      if (!url || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.hash !== '')
        throw new Error(`must be a URL such as ${example}`);
      return value;
    },
  };
}

/** An address of a web server that is reached over TLS only. */
export function tlsAddress(description: string, example: string): Setting<string | undefined> {
  return {
    shown: 'none',
    description,
    read: (value) => {
      const url = value !== undefined && URL.canParse(value) ? new URL(value) : undefined;
      if (value !== undefined && (url?.protocol !== 'https:' || url.username !== '' || url.hash !== ''))
        throw new Error(`must be a URL such as ${example}`);
      return value;
    },
  };
}

export function emailAddress(description: string): Setting<string | undefined> {
  return {
    shown: 'none',
    description,
    read: (value) => {
      if (value !== undefined && !/^[^\s@<>",;:?]{1,64}@[^\s@<>",;:?]{1,189}$/.test(value))
        throw new Error('must be an e-mail address such as ada@example.com');
      return value;
    },
  };
}

/** An object in JSON; who uses it checks its members. */
export function jsonObject(description: string): Setting<Readonly<Record<string, unknown>> | undefined> {
  return {
    shown: 'none',
    description,
    read: (value) => {
      if (value === undefined) return undefined;
      try {
        const parsed: unknown = JSON.parse(value);
        if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
          return parsed as Readonly<Record<string, unknown>>;
      } catch {
        // What is no JSON has the same error as JSON that is no object.
      }
      throw new Error('must be an object in JSON, such as {"operators": "admin"}');
    },
  };
}

/** Names and values, which may be percent-encoded. The values are not shown: they may be secret. */
export function pairs(description: string): Setting<Readonly<Record<string, string>>> {
  const readPair = (text: string): [string, string] => {
    const [, name = '', value = ''] = /^\s*([\w!#$&.^`|~+-]+)\s*=\s*([\x20-\x7e]*?)\s*$/.exec(text) ?? [];
    try {
      if (name !== '') return [name, decodeURIComponent(value)];
    } catch {
      // What cannot be decoded has the same error as what is no pair.
    }
    throw new Error('must be name=value, name=value, with special characters percent-encoded');
  };
  return {
    shown: 'none',
    description,
    read: (value) =>
      Object.fromEntries(
        (value ?? '')
          .split(',')
          .filter((text) => text.trim() !== '')
          .map(readPair),
      ),
  };
}

export function ratio(description: string): Setting<number> {
  return {
    shown: '1',
    description,
    read: (value) => {
      const number = value === undefined ? 1 : /^\d*\.?\d+$/.test(value) ? Number(value) : Number.NaN;
      if (!(number >= 0 && number <= 1)) throw new Error(`must be a number from 0 to 1, not "${value}"`);
      return number;
    },
  };
}

export function optionalInteger(min: number, max: number, description: string): Setting<number | undefined> {
  const { read } = integer(min, min, max, description);
  return { shown: 'none', description, read: (value) => (value === undefined ? undefined : read(value)) };
}

/** Addresses and networks, all in the notation of networks. */
export function networks(description: string): Setting<readonly string[]> {
  return { shown: 'none', description, read: (value) => (value ?? '').split(',').flatMap(readNetwork) };
}

function readNetwork(text: string): string[] {
  const network = text.trim();
  if (network === '') return [];
  const [, address = '', length] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(network) ?? [];
  const bits = isIP(address) === 4 ? 32 : 128;
  if (isIP(address) === 0 || Number(length ?? bits) > bits)
    throw new Error(`must be IP addresses and networks (10.0.0.0/8), which "${network}" is not`);
  return [`${address}/${length ?? bits}`];
}

/** Web servers by their hosts, as origins: over TLS, unless `http://` is before one. */
export function webHosts(description: string): Setting<readonly string[]> {
  return { shown: 'none', description, read: (value) => (value ?? '').split(',').flatMap(readWebHost) };
}

/** Where crates are from, and the secret of the installation by which it lets the product in. */
export interface HostSecret {
  /** The index of a registry, which begins with `sparse+`; else the origin of a web server. */
  readonly place: string;
  readonly secret: string;
}

/** Each with the name of a secret: `git.example.com=GIT_TOKEN`. */
export function hostSecrets(description: string): Setting<readonly HostSecret[]> {
  return { shown: 'none', description, read: (value) => (value ?? '').split(',').flatMap(readHostSecret) };
}

function readHostSecret(text: string): HostSecret[] {
  if (text.trim() === '') return [];
  const [, place = '', secret = ''] = /^(.+)=([^=]+)$/.exec(text.trim()) ?? [];
  const [known] = /^sparse\+https?:\/\/.+\/$/.test(place) ? [place] : readWebHost(place);
  if (known !== undefined && secret.trim() !== '') return [{ place: known, secret: secret.trim() }];
  throw new Error(
    'must be hosts and indexes with names of secrets, such as git.example.com=GIT_TOKEN, or ' +
      `sparse+https://crates.example.com/=CRATES_TOKEN, which "${text}" is not`,
  );
}

function readWebHost(text: string): string[] {
  const host = text.trim().toLowerCase();
  if (host === '') return [];
  const address = /^https?:\/\//.test(host) ? host : `https://${host}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  // Nothing but that, in the one form that it has.
  if (url && address === `${url.protocol}//${url.host}`) return [url.origin];
  throw new Error(`must be hosts such as git.example.com, or git.example.com:8443, which "${host}" is not`);
}

export function flag(description: string): Setting<boolean> {
  return {
    shown: '`false`',
    description,
    read: (value) => {
      if (value === undefined || value === 'false' || value === '0') return false;
      if (value === 'true' || value === '1') return true;
      throw new Error(`must be true or false, not "${value}"`);
    },
  };
}

export function oneOf<T extends string>(choices: readonly T[], fallback: T, description: string): Setting<T> {
  return {
    shown: `\`${fallback}\``,
    description: `${description} One of ${choices.join(', ')}.`,
    read: (value) => {
      if (value === undefined) return fallback;
      const choice = choices.find((candidate) => candidate === value);
      if (choice === undefined) throw new Error(`must be one of ${choices.join(', ')}, not "${value}"`);
      return choice;
    },
  };
}
