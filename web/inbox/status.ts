/** The words of a message's way, how each is drawn, and which comes after which. */
import type { MessageStatus } from 'soundpost-contract/job';
import { element, icon } from './elements.ts';

const statuses: Readonly<Record<MessageStatus, { icon: string; text: string; rank: number }>> = {
  PENDING: { icon: 'clock', text: 'Pending', rank: 1 },
  SERVER_ACK: { icon: 'sent', text: 'Sent', rank: 2 },
  ERROR: { icon: 'failed', text: 'Undelivered', rank: 3 },
  DELIVERY_ACK: { icon: 'delivered', text: 'Delivered', rank: 4 },
  READ: { icon: 'delivered', text: 'Read', rank: 5 },
  PLAYED: { icon: 'played', text: 'Played', rank: 6 },
};

/** Events may come twice or late; a status only moves forward. */
export function isLater(status: MessageStatus, than: MessageStatus): boolean {
  return statuses[status].rank > statuses[than].rank;
}

export function tick(status: MessageStatus): HTMLElement {
  const { icon: name, text } = statuses[status];
  const node = element('span', { class: `tick tick-${status.toLowerCase()}`, title: text }, icon(name));
  node.append(element('span', { class: 'visually-hidden', textContent: text }));
  return node;
}
