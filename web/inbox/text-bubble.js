// One text message.

import { messageFrame } from './message-frame.js';
import { element } from './shared/elements.js';

const ADDRESS = /(https?:\/\/[^\s<>"']+)/;

export class TextBubble {
  #message;
  #frame;
  #text;

  /** @param message as the data route gives it */
  constructor(message) {
    this.#message = message;
    this.#text = element('p', { class: 'text' }, ...linked(message.message.conversation));
    this.#frame = messageFrame(message, 'Message', { content: [this.#text] });
  }

  get node() {
    return this.#frame.item;
  }

  get status() {
    return this.#message.status;
  }

  setStatus(status) {
    this.#message.status = status;
    this.#frame.setStatus(status);
  }

  setContent({ conversation }) {
    this.#text.replaceChildren(...linked(conversation ?? ''));
    this.#frame.markEdited();
  }

  dispose() {
    // A text holds nothing that has to be let go.
  }
}

/** The text with its addresses as links. */
function linked(text) {
  return text
    .split(ADDRESS)
    .map((part, index) =>
      index % 2 === 0
        ? part
        : element('a', { href: part, target: '_blank', rel: 'noopener noreferrer', textContent: part }),
    );
}
