/** The round sign of a chat. */
import type { InboxChat } from 'soundpost-contract/inbox';
import { icon } from './elements.ts';

const HUES = 6;

/** A round sign for a chat: initials on a colour that its address chooses. */
export function dressAvatar(node: HTMLElement, { jid, name, isGroup }: InboxChat): void {
  const sum = [...jid].reduce((total, character) => total + character.charCodeAt(0), 0);
  node.className = `avatar hue-${sum % HUES}`;
  if (isGroup) {
    node.replaceChildren(icon('group'));
    return;
  }
  const words = name.split(/\s+/).filter((word) => /^\p{L}/u.test(word));
  const letters = [words[0], words.length > 1 ? words.at(-1) : ''].map((word) => [...(word ?? '')][0] ?? '');
  node.textContent = letters.join('').toUpperCase() || '#';
}
