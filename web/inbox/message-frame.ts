/** What every message has around what it says: author, quoted message, mentions, time, tick, and that it was changed. */
import type { InboxMessage } from 'soundpost-contract/inbox';
import type { MessageStatus } from 'soundpost-contract/job';
import { shortTime } from '../shared/time.ts';
import { element } from './elements.ts';
import { nameOf } from './people.ts';
import { tick } from './status.ts';

interface Parts {
  readonly content: readonly Node[];
  /** Beside the time. */
  readonly beforeTime?: Node;
  readonly after?: Node;
}

export interface MessageFrame {
  readonly item: HTMLLIElement;
  setStatus(status: MessageStatus): void;
  markEdited(): void;
}

export function messageFrame(
  message: InboxMessage,
  kind: 'Message' | 'Voice message',
  { content, beforeTime, after }: Parts,
): MessageFrame {
  const { key, authorName, context, timestampSeconds, edited } = message;
  const sentAt = new Date(timestampSeconds * 1000).toISOString();
  const time = element('time', { dateTime: sentAt, textContent: shortTime(sentAt) });
  const editedPlace = element('span', { class: 'edited', textContent: edited ? 'edited' : '' });
  const tickPlace = element('span', { class: 'tick-place' });
  const item = element(
    'li',
    { class: `message ${key.fromMe ? 'mine' : 'theirs'}` },
    element(
      'article',
      {
        class: `bubble${kind === 'Message' ? ' bubble-text' : ''}`,
        'aria-label': `${kind} ${key.fromMe ? 'sent' : `from ${authorName ?? 'somebody'}`}`,
      },
      key.fromMe ? null : element('p', { class: 'author', textContent: authorName ?? '' }),
      quotedBlock(context.quoted),
      ...content,
      element('p', { class: 'meta' }, beforeTime ?? null, mentions(context), editedPlace, time, tickPlace),
      after ?? null,
    ),
  );
  item.dataset.messageId = key.id;
  const setStatus = (status: MessageStatus): void => {
    item.dataset.status = status;
    tickPlace.replaceChildren(...(key.fromMe ? [tick(status)] : []));
  };
  setStatus(message.status);
  return {
    item,
    setStatus,
    markEdited() {
      editedPlace.textContent = 'edited';
    },
  };
}

function quotedBlock(quoted: InboxMessage['context']['quoted']): HTMLElement | null {
  return quoted === undefined
    ? null
    : element('blockquote', { class: 'quoted', textContent: quoted.text ?? 'Earlier message' });
}

function mentions({ mentioned, mentionsEveryOne }: InboxMessage['context']): HTMLElement | null {
  const names = mentionsEveryOne ? ['everyone'] : mentioned.map((address) => nameOf(address));
  return names.length === 0
    ? null
    : element('span', { class: 'mentions', textContent: names.map((name) => `@${name}`).join(' ') });
}
