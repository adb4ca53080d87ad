/** What the page is about at the moment. Modules read it; each part is written by the module that it belongs to. */
import type { InboxChat, InboxInstance, InboxPerson } from 'soundpost-contract/inbox';

interface State {
  /** Instances that the key opens. Written by inbox.ts. */
  instances: readonly InboxInstance[];
  /** The chosen one. Written by inbox.ts. */
  instance: InboxInstance | null;
  /** Chats of the chosen instance. Written by chats.ts. */
  chats: readonly InboxChat[];
  /** The open chat. Written by conversation.ts. */
  chat: InboxChat | null;
  /** Who can be played in the open chat. Written by people.ts. */
  people: readonly InboxPerson[];
  /** Whom the next reply comes from; null where nobody is played. Written by people.ts. */
  persona: InboxPerson | null;
}

export const state: State = {
  instances: [],
  instance: null,
  chats: [],
  chat: null,
  people: [],
  persona: null,
};

/** @throws where index.html has no such element */
export function byId(id: string): HTMLElement;
export function byId<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind;
export function byId(id: string, kind: new () => HTMLElement = HTMLElement): HTMLElement {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`index.html has no ${kind.name} with the id ${id}`);
  }
  return found;
}

/** An open chat with the instance whose it is. */
export interface OpenChat {
  readonly instance: InboxInstance;
  readonly chat: InboxChat;
}

/** Null where no chat is open. */
export function openedChat(): OpenChat | null {
  const { instance, chat } = state;
  return instance === null || chat === null ? null : { instance, chat };
}

/** Path of a chat below inbox/api/. */
export function chatPath({ instance, chat }: OpenChat): string {
  return `instances/${instance.id}/chats/${encodeURIComponent(chat.jid)}`;
}

/** Says something to whoever listens to the page. */
export function announce(text: string): void {
  byId('announcements').textContent = text;
}
