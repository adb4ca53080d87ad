/** What a send leaves behind when our own records fail around it, and where a quotation goes. */
import type { TransportReports } from 'soundpost-chat/transport';
import { expect, it } from 'vitest';
import { Refused } from '../src/api.ts';
import { Outgoing } from '../src/outgoing.ts';

const away = new Error('Connection is closed.');
const chat = { jid: '-5@telegram', name: 'Club', isGroup: true };
const text = { messageId: 'A', chat, text: 'hello' };
const context = { mentioned: [], mentionsEveryOne: false, linkPreview: false };
const { signal } = new AbortController();

interface Records {
  /** Of the log and the book. */
  readonly find?: () => Promise<unknown>;
  readonly learn?: () => Promise<void>;
  readonly statusChanged?: TransportReports['statusChanged'];
}

/** @param moves whether the group became a supergroup */
function outgoing(records: Records, moves = false) {
  const { find = async () => undefined, learn = async () => undefined } = records;
  const asked: { chat_id: number }[] = [];
  const api = {
    async call(_method: string, parameters: { chat_id: number }) {
      asked.push(parameters);
      if (moves && parameters.chat_id === -5) throw new Refused(400, 'upgraded', { migratedTo: -1005 });
      return { message_id: 9, date: 1, chat: { id: parameters.chat_id, type: 'group' } };
    },
  };
  const { statusChanged = async () => undefined } = records;
  const one = new Outgoing({
    ...{ instanceId: 'i', api, revoked: () => undefined, lease: { assert: () => undefined } },
    log: { find, moveChat: async () => undefined },
    book: { find, learn },
    reports: { statusChanged },
  } as never);
  return {
    asked,
    text: (quoted?: { id: string; text: undefined }) =>
      one.text({ ...text, context: { ...context, quoted } }, signal),
  };
}

const fails = async (): Promise<never> => {
  throw away;
};

it('is a certain failure while our records are away, before it goes and after the group moved', async () => {
  const unread = outgoing({ find: fails });
  await expect(unread.text({ id: '-5_1', text: undefined })).rejects.toMatchObject({ code: 'not_connected' });
  expect(unread.asked).toEqual([]);
  const unwritten = outgoing({ learn: fails }, true);
  await expect(unwritten.text()).rejects.toMatchObject({ code: 'not_connected' });
  expect(unwritten.asked).toHaveLength(1);
});

it('is sent once Telegram has it, and noted as soon as our records are back', async () => {
  const noted = Promise.withResolvers<string>();
  let attempts = 0;
  const statusChanged = async (_instanceId: string, messageId: string) => {
    attempts += 1;
    if (attempts === 1) throw away;
    noted.resolve(messageId);
  };
  await outgoing({ statusChanged }).text();
  expect(await noted.promise).toBe('A');
});

it('quotes nothing in the supergroup that the group became: the message has another id there', async () => {
  const moved = outgoing({}, true);
  await moved.text({ id: '-5_7', text: undefined });
  expect(moved.asked[0]).toMatchObject({ chat_id: -5, reply_parameters: { message_id: 7 } });
  expect(moved.asked[1]).toMatchObject({ chat_id: -1005 });
  expect(moved.asked[1]).not.toHaveProperty('reply_parameters');
});
