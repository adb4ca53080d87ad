// What every message has around what it says: author, quoted message, mentions, time, tick, and that it was changed.

import { nameOf } from './people.js';
import { element, shortTime } from './shared/elements.js';
import { tick } from './status.js';

/**
 * @param message as the data route gives it
 * @param {string} kind such as `Voice message`
 * @param {{ content: Node[], beforeTime?: Node, after?: Node }} parts
 */
export function messageFrame(message, kind, { content, beforeTime = null, after = null }) {
  const { key, authorName, context, timestampSeconds, edited } = message;
  const sentAt = new Date(timestampSeconds * 1000);
  const time = element('time', { dateTime: sentAt.toISOString(), textContent: shortTime(sentAt) });
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
      element('p', { class: 'meta' }, beforeTime, mentions(context), editedPlace, time, tickPlace),
      after,
    ),
  );
  item.dataset.messageId = key.id;
  const setStatus = (status) => {
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

function quotedBlock(quoted) {
  return quoted === undefined
    ? null
    : element('blockquote', { class: 'quoted', textContent: quoted.text ?? 'Earlier message' });
}

function mentions({ mentioned, mentionsEveryOne }) {
  const names = mentionsEveryOne ? ['everyone'] : mentioned.map((address) => nameOf(address));
  return names.length === 0
    ? null
    : element('span', { class: 'mentions', textContent: names.map((name) => `@${name}`).join(' ') });
}
