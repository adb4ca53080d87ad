// What the page is about at the moment. Modules read it; each part is written by the module that it belongs to.

export const state = {
  /** Instances that the key opens. Written by inbox.js. */
  instances: [],
  /** The chosen one, or null. Written by inbox.js. */
  instance: null,
  /** Chats of the chosen instance. Written by chats.js. */
  chats: [],
  /** The open chat, or null. Written by conversation.js. */
  chat: null,
  /** Who can be played in the open chat. Written by people.js. */
  people: [],
  /** Whom the next reply comes from, or null where nobody is played. Written by people.js. */
  persona: null,
};

/** @param {string} id */
export const byId = (id) => document.getElementById(id);

/** Path of the open chat below inbox/api/. */
export function chatPath(chat = state.chat) {
  return `instances/${state.instance.id}/chats/${encodeURIComponent(chat.jid)}`;
}

/** Says something to whoever listens to the page. */
export function announce(text) {
  byId('announcements').textContent = text;
}
