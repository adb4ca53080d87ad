import { expect, it } from 'vitest';
import { markMentions } from '../src/mentions.ts';

const ada = { id: 42, name: 'Ada' };

/** What the entities cover. */
const covered = ({ text, entities }: ReturnType<typeof markMentions>) =>
  entities.map(({ offset, length, user }) => [user.id, text.slice(offset, offset + length)]);

it('marks @id where it stands, and counts an emoji before it as two', () => {
  const marked = markMentions('👋 @42, look', [ada]);
  expect(marked.text).toBe('👋 @42, look');
  expect(covered(marked)).toEqual([[42, '@42']]);
});

it('adds the names that the text does not have', () => {
  const marked = markMentions('@421 look', [ada, { id: 7, name: 'Hedy 👩' }]);
  expect(marked.text).toBe('@421 look Ada Hedy 👩');
  expect(covered(marked)).toEqual([
    [42, 'Ada'],
    [7, 'Hedy 👩'],
  ]);
});

it('makes a caption of the names alone', () => {
  expect(markMentions('', [ada])).toEqual({
    text: 'Ada',
    entities: [{ type: 'text_mention', offset: 0, length: 3, user: { id: 42 } }],
  });
});
