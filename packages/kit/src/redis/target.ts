/** Parses REDIS_URL: a single Redis, a master known to Sentinels, or a cluster. */

interface Login {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

interface Node {
  readonly host: string;
  readonly port: number;
}

type RedisTarget =
  | { readonly kind: 'socket'; readonly path: string }
  | ({ readonly kind: 'single'; readonly tls: boolean; readonly node: Node; readonly db: number } & Login)
  | ({
      readonly kind: 'sentinel';
      readonly tls: boolean;
      readonly sentinels: readonly Node[];
      /** The Sentinels' name for the master. */
      readonly master: string;
      readonly db: number;
      /** For the Sentinels, which have their own users. */
      readonly sentinelLogin: Login;
    } & Login)
  | ({ readonly kind: 'cluster'; readonly tls: boolean; readonly nodes: readonly [Node, ...Node[]] } & Login);

/** The message names the fault and the remedy, never the password. */
export class RedisUrlError extends Error {
  override readonly name = 'RedisUrlError';
}

const FORMS =
  'redis://[user:password@]host:port[/db], redis+sentinel://[user:password@]host:port,host:port/master[/db], redis+cluster://[user:password@]host:port,host:port (rediss… for TLS), or unix:///path/to/socket';
const DEFAULT_PORT = { single: 6379, sentinel: 26379, cluster: 6379 };

/** @throws RedisUrlError */
export function parseRedisUrl(url: string): RedisTarget {
  if (url.startsWith('unix://')) {
    const path = url.slice('unix://'.length);
    return path.startsWith('/')
      ? { kind: 'socket', path }
      : refuse('a socket needs a whole path, as in unix:///run/redis.sock');
  }
  // Not `URL` (WHATWG), which allows one host only.
  const parts = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/([^?#]*)(?:\?([^#]*))?$/.exec(url);
  if (parts === null) {
    refuse(`must have one of the forms ${FORMS}`);
  }
  const [, scheme, mode, rest = '', query = ''] = parts;
  const kind = mode === 'sentinel' || mode === 'cluster' ? mode : 'single';
  // The last @ ends the login, so that a password may have an @.
  const at = rest.lastIndexOf('@');
  const login = parseLogin(at < 0 ? undefined : rest.slice(0, at));
  const [hosts = '', ...path] = rest.slice(at + 1).split('/');
  const nodes = hosts.split(',').map((text) => parseNode(text, DEFAULT_PORT[kind]));
  const tls = scheme === 'rediss';
  const sentinelLogin = parseQuery(query, kind);
  switch (kind) {
    case 'single': {
      const [node, ...others] = nodes;
      if (node === undefined || others.length > 0) {
        refuse('redis:// names one host; several need redis+sentinel:// or redis+cluster://');
      }
      return { kind, tls, node, db: parseDb(path), ...login };
    }
    case 'sentinel': {
      const [master = '', ...db] = path;
      if (master === '') {
        refuse(
          'redis+sentinel:// ends with the name of the master, as in redis+sentinel://host:26379/mymaster',
        );
      }
      return {
        kind,
        tls,
        sentinels: nodes,
        master: decode(master),
        db: parseDb(db),
        sentinelLogin,
        ...login,
      };
    }
    case 'cluster': {
      if (path.some((segment) => segment !== '' && segment !== '0')) {
        refuse('a Redis Cluster has no databases: end the URL after the hosts');
      }
      const [first, ...others] = nodes;
      return first === undefined
        ? refuse('a host is missing')
        : { kind, tls, nodes: [first, ...others], ...login };
    }
  }
}

function parseLogin(text: string | undefined): Login {
  if (text === undefined) {
    return {};
  }
  const colon = text.indexOf(':');
  const username = decode(colon < 0 ? text : text.slice(0, colon));
  const password = colon < 0 ? '' : decode(text.slice(colon + 1));
  if (password === '') {
    refuse('a user needs a password, as in redis://user:password@host, or redis://:password@host');
  }
  return { ...(username === '' ? {} : { username }), password };
}

function parseNode(text: string, defaultPort: number): Node {
  const [, v6, name, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = v6 ?? name;
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > 65_535) {
    refuse(
      'each host is written host:port, [v6-address]:port for IPv6; in a password ? # and % have to be percent-encoded',
    );
  }
  return { host, port: number };
}

function parseDb([text = '', ...more]: readonly string[]): number {
  if (!/^\d{0,5}$/.test(text) || more.some((segment) => segment !== '')) {
    refuse('the host may be followed only by the number of a database, as in redis://host:6379/2');
  }
  return Number(text);
}

function parseQuery(query: string, kind: RedisTarget['kind']): Login {
  const { sentinelUsername, sentinelPassword, ...others } = Object.fromEntries(new URLSearchParams(query));
  const [unknown] = kind === 'sentinel' ? Object.keys(others) : [...new URLSearchParams(query).keys()];
  if (unknown !== undefined) {
    refuse(
      `there is no parameter ${unknown}; redis+sentinel:// takes sentinelUsername and sentinelPassword, the others none`,
    );
  }
  return { username: sentinelUsername, password: sentinelPassword };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse('a % in a user, password or name has to be written %25');
  }
}

function refuse(sentence: string): never {
  throw new RedisUrlError(sentence);
}
