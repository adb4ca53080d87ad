/** Access to the inbox, and which instances are visible. */
import type { Request, RequestHandler } from 'express';
import { type Instance, type Instances, instanceNotFound } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { randomToken, type SecretHasher } from 'soundpost-chat/tokens';
import type { Redis } from 'soundpost-kit/redis/connection';
import { type Access, unauthorized, type WrongKeys } from '../middleware/access.ts';
import { noteKey } from '../middleware/request-log.ts';

/** Ids of the visible instances. */
type Visible = 'all' | ReadonlySet<string>;

interface ViewersOptions {
  readonly access: Access;
  readonly inboxSessions: InboxSessions;
  readonly instances: Instances;
  readonly wrongKeys: WrongKeys;
}

export class Viewers {
  readonly #options: ViewersOptions;
  readonly #visible = new WeakMap<Request, Visible>();

  constructor(options: ViewersOptions) {
    this.#options = options;
  }

  /** Rejects callers without a key or a session. */
  readonly require: RequestHandler = async (request, _response, next) => {
    const visible = await this.identify(request);
    if (visible === undefined) {
      throw unauthorized();
    }
    this.#visible.set(request, visible);
    next();
  };

  /** What this request can see; undefined for nothing. */
  async identify(request: Request): Promise<Visible | undefined> {
    const { inboxSessions, access, wrongKeys } = this.#options;
    const session = /^Bearer (\S{1,128})$/.exec(request.get('authorization') ?? '')?.[1];
    if (session !== undefined) {
      const opened = await wrongKeys.guard<'all'>(request, async () =>
        (await inboxSessions.isOpen(session)) ? 'all' : undefined,
      );
      if (opened !== undefined) {
        noteKey(request, 'inbox-session');
      }
      return opened;
    }
    const principal = await access.principalOf(request);
    if (principal?.kind === 'instance') {
      return new Set([principal.instance.id]);
    }
    return principal === undefined ? undefined : 'all';
  }

  visibleTo(request: Request): Visible {
    return this.#visible.get(request) ?? new Set();
  }

  async instances(request: Request): Promise<Instance[]> {
    const visible = this.visibleTo(request);
    const all = await this.#options.instances.list();
    return visible === 'all' ? all : all.filter(({ id }) => visible.has(id));
  }

  /** The instance in the path; a hidden one is answered like one that does not exist. */
  async instance(request: Request): Promise<Instance> {
    const visible = this.visibleTo(request);
    const instance = await this.#options.instances.find(String(request.params.instance));
    if (instance === undefined || (visible !== 'all' && !visible.has(instance.id))) {
      throw instanceNotFound();
    }
    return instance;
  }
}

// The inbox opens for the gateway's key, an instance's token or a one-time link. The link's code is
// valid for 10 minutes and one use; it is exchanged for a session of the inbox only.

const CODE_SECONDS = 10 * 60;
const SESSION_SECONDS = 12 * 60 * 60;

export class InboxSessions {
  readonly #redis: Redis;
  readonly #hasher: SecretHasher;

  constructor(redis: Redis, hasher: SecretHasher) {
    this.#redis = redis;
    this.#hasher = hasher;
  }

  /** A code for `/inbox?code=…`; only its hash is stored. */
  async createCode(): Promise<string> {
    const code = randomToken();
    await this.#redis.set(this.#codeKey(code), '1', 'EX', CODE_SECONDS);
    return code;
  }

  /** A session for the code; undefined if it is unknown, used or expired. */
  async redeem(code: string): Promise<string | undefined> {
    // GETDEL: of two callers with a code, one gets the session.
    if ((await this.#redis.getdel(this.#codeKey(code))) === null) {
      return undefined;
    }
    const session = randomToken();
    await this.#redis.set(this.#sessionKey(session), '1', 'EX', SESSION_SECONDS);
    return session;
  }

  async isOpen(session: string): Promise<boolean> {
    return (await this.#redis.exists(this.#sessionKey(session))) === 1;
  }

  #codeKey(code: string): string {
    return gatewayKey('inbox-code', this.#hasher.hash('inbox code', code));
  }

  #sessionKey(session: string): string {
    return gatewayKey('inbox-session', this.#hasher.hash('inbox session', session));
  }
}
