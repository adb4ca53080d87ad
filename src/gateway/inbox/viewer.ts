/** Who looks into the inbox, and what they may see. */
import type { Request, RequestHandler } from 'express';
import { type Instance, type Instances, instanceNotFound } from 'soundpost-chat/instances';
import { type Access, unauthorized } from '../middleware/access.ts';
import { noteKey } from '../middleware/audit.ts';
import type { WrongKeys } from '../middleware/wrong-keys.ts';
import type { InboxSessions } from './inbox-sessions.ts';

/** Ids of the instances that may be seen. */
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

  /** Refuses whoever has neither a key nor a session. */
  readonly require: RequestHandler = async (request, _response, next) => {
    const visible = await this.identify(request);
    if (visible === undefined) {
      throw unauthorized();
    }
    this.#visible.set(request, visible);
    next();
  };

  /** What this request may see now; undefined for nothing. */
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

  /** The instance of the path. One that may not be seen answers as one that does not exist. */
  async instance(request: Request): Promise<Instance> {
    const visible = this.visibleTo(request);
    const instance = await this.#options.instances.find(String(request.params.instance));
    if (instance === undefined || (visible !== 'all' && !visible.has(instance.id))) {
      throw instanceNotFound();
    }
    return instance;
  }
}
