/** One text message. */
import type { MessageContent } from 'soundpost-contract/gateway';
import type { InboxMessage } from 'soundpost-contract/inbox';
import type { MessageStatus } from 'soundpost-contract/job';
import { element } from './elements.ts';
import { type MessageFrame, messageFrame } from './message-frame.ts';

const ADDRESS = /(https?:\/\/[^\s<>"']+)/;

export class TextBubble {
  readonly #frame: MessageFrame;
  readonly #text: HTMLElement;
  #status: MessageStatus;

  constructor(message: InboxMessage, text: string) {
    this.#status = message.status;
    this.#text = element('p', { class: 'text' }, ...linked(text));
    this.#frame = messageFrame(message, 'Message', { content: [this.#text] });
  }

  get node(): HTMLElement {
    return this.#frame.item;
  }

  get status(): MessageStatus {
    return this.#status;
  }

  setStatus(status: MessageStatus): void {
    this.#status = status;
    this.#frame.setStatus(status);
  }

  setContent(content: MessageContent): void {
    this.#text.replaceChildren(...linked(textOf(content)));
    this.#frame.markEdited();
  }

  dispose(): void {
    // A text holds nothing that has to be let go.
  }
}

/** What a message reads as that cannot be heard. */
export function textOf(content: MessageContent): string {
  if ('conversation' in content) return content.conversation;
  return 'videoMessage' in content ? `[video] ${content.videoMessage.caption ?? ''}`.trim() : '';
}

/** The text with its addresses as links. */
function linked(text: string): (string | HTMLElement)[] {
  return text
    .split(ADDRESS)
    .map((part, index) =>
      index % 2 === 0
        ? part
        : element('a', { href: part, target: '_blank', rel: 'noopener noreferrer', textContent: part }),
    );
}
