/**
 * Mentions as entities (core.telegram.org/bots/api#messageentity). Their places count UTF-16 code
 * units, as JavaScript's strings do.
 */

interface Mentioned {
  /** Of a person. */
  readonly id: number;
  readonly name: string;
}

interface Marked {
  readonly text: string;
  readonly entities: readonly {
    readonly type: 'text_mention';
    readonly offset: number;
    readonly length: number;
    readonly user: { readonly id: number };
  }[];
}

/**
 * Marks `@<id>` in the text, as clients of this interface write it, or else adds the name at the
 * end. Telegram notifies the people who are in the chat, and drops the marks of all others.
 */
export function markMentions(text: string, mentioned: readonly Mentioned[]): Marked {
  const entities: Marked['entities'][number][] = [];
  let marked = text;
  for (const { id, name } of mentioned) {
    const written = new RegExp(`@${id}(?!\\d)`).exec(marked);
    const offset = written?.index ?? (marked === '' ? 0 : marked.length + 1);
    const label = written?.[0] ?? name;
    if (written === null) marked = marked === '' ? label : `${marked} ${label}`;
    entities.push({ type: 'text_mention', offset, length: label.length, user: { id } });
  }
  return { text: marked, entities };
}
