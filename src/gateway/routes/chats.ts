/**
 * Chat operations beside sending (messaging-gateway.md; decisions B): edit messages, show presence,
 * block contacts (also by its alias), find contacts and chats ("Records").
 */

import { setTimeout as wait } from 'node:timers/promises';
import { meansJid, parseAddress } from 'soundpost-chat/address';
import { type LoggedMessage, withText } from 'soundpost-chat/message-log';
import { type Chat, type Session, UnsupportedOperation } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import {
  BlockStatusRequest,
  ChatRecord,
  ContactRecord,
  FindChatsRequest,
  FindContactsRequest,
  PublicBlockAnswer,
  PublicEditAnswer,
  PublicPresenceAnswer,
  SendPresenceRequest,
  UpdateMessageRequest,
} from 'soundpost-contract/gateway-operations';
import { z } from 'zod';
import { chatRecords } from '../chat-records.ts';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

const DEFAULT_PAGE_SIZE = 50;

export function chatRoutes(services: GatewayServices): Route[] {
  return [
    updateMessage(services),
    sendPresence(services),
    ...blockStatusRoutes(services),
    ...findRoutes(services),
  ];
}

function findRoutes({ sessions, log }: GatewayServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/chat/findContacts/:instance',
      access: 'instance',
      docs: {
        operationId: 'findContacts',
        summary: 'List contacts and groups',
        tag: 'Chats',
        answer: { status: 200, description: 'Those found, maybe none', body: z.array(ContactRecord) },
        errors: ['network_refused', 'not_connected'],
      },
      body: FindContactsRequest,
      async run({ instance, body }) {
        const session = await sessions.connected(instance);
        const contacts = (await session.contacts()).map(({ jid, name, isGroup, ...contact }) => ({
          id: jid,
          remoteJid: jid,
          pushName: name,
          profilePicUrl: contact.profilePicUrl ?? null,
          isGroup,
          isSaved: contact.isSaved,
          blocked: contact.blocked,
        }));
        return found(contacts, await listed(session, body));
      },
    }),
    route({
      method: 'post',
      path: '/chat/findChats/:instance',
      access: 'instance',
      docs: {
        operationId: 'findChats',
        summary: 'List chats',
        description: 'Chats with messages come first, the latest at the top.',
        tag: 'Chats',
        answer: { status: 200, description: 'Those found, maybe none', body: z.array(ChatRecord) },
        errors: ['network_refused', 'not_connected'],
      },
      body: FindChatsRequest,
      async run({ instance, body }) {
        const session = await sessions.connected(instance);
        // Public clients pass a message id here, for the chat that contains it.
        const holder = body.where?.id ? await log.find(instance.id, body.where.id) : undefined;
        const [records, wanted, meant] = await Promise.all([
          chatRecords(instance, session, log),
          listed(session, body),
          holder && session.addressesOf?.(holder.key.remoteJid),
        ]);
        return found(records, wanted, meant?.[0] ?? holder?.key.remoteJid);
      },
    }),
  ];
}

/** Names people by the JID under which they are listed. */
async function listed(
  session: Session,
  request: z.output<typeof FindChatsRequest>,
): Promise<z.output<typeof FindChatsRequest>> {
  const asListed = async (jid: string | null | undefined): Promise<string | undefined> =>
    jid?.includes('@') ? ((await session.addressesOf?.(jid))?.[0] ?? jid) : (jid ?? undefined);
  const { id, remoteJid } = request.where ?? {};
  const where = { ...request.where, id: await asListed(id), remoteJid: await asListed(remoteJid) };
  return { ...request, where };
}

/** @param alsoMeant another JID that `where.id` refers to */
function found<Found extends { remoteJid: string; isGroup: boolean }>(
  all: readonly Found[],
  { where, page, offset }: z.output<typeof FindChatsRequest>,
  alsoMeant?: string,
): Found[] {
  // Public clients send empty values for unknown ones.
  const { id, remoteJid } = where ?? {};
  const matching = all.filter(
    (record) =>
      (!id || record.remoteJid === alsoMeant || meansJid(id, record.remoteJid, record.isGroup)) &&
      (!remoteJid || meansJid(remoteJid, record.remoteJid, record.isGroup)),
  );
  if (!page && !offset) {
    return matching;
  }
  const size = offset ?? DEFAULT_PAGE_SIZE;
  const start = ((page ?? 1) - 1) * size;
  return matching.slice(start, start + size);
}

const paths = [
  { path: '/message/updateBlockStatus/:instance', operationId: 'updateBlockStatus' },
  { path: '/chat/updateBlockStatus/:instance', operationId: 'updateBlockStatusOfChat' },
] as const;

function blockStatusRoutes({ sessions, answersAsPublic }: GatewayServices): Route[] {
  return paths.map(({ path, operationId }) =>
    route({
      method: 'post',
      path,
      access: 'instance',
      docs: {
        operationId,
        summary: 'Block or unblock a contact',
        description: 'While a contact is blocked, messages in both directions end with ERROR.',
        tag: 'Chats',
        answer: {
          status: 201,
          description: 'Done',
          ...(answersAsPublic ? { body: PublicBlockAnswer } : {}),
        },
        errors: ['unknown_recipient', 'unsupported', 'network_refused', 'not_connected'],
      },
      body: BlockStatusRequest,
      async run({ instance, body: { number, status } }) {
        const session = await sessions.connected(instance);
        if (session.setBlocked === undefined) {
          throw new UnsupportedOperation('blocking', instance.transport);
        }
        const chat = await session.resolve(parseAddress(number, 'number'), 'number');
        if (chat.isGroup) {
          throw new GatewayError('bad_request', 'number: a group cannot be blocked');
        }
        await session.setBlocked(chat, status === 'block');
        return answersAsPublic ? { block: 'success' as const } : undefined;
      },
    }),
  );
}

function sendPresence({ sessions, answersAsPublic, closing, logger }: GatewayServices): Route {
  /** Not awaited by the request; a stopping gateway ends the presence early. */
  const pauseLater = async (session: Session, chat: Chat, delayMs: number): Promise<void> => {
    await wait(delayMs, undefined, { signal: closing, ref: false }).catch(() => undefined);
    await session
      .showPresence(chat, 'paused')
      .catch((error: unknown) => logger.warn({ err: error }, 'a presence was not ended'));
  };
  return route({
    method: 'post',
    path: '/chat/sendPresence/:instance',
    access: 'instance',
    docs: {
      operationId: 'sendPresence',
      summary: 'Show a contact that you are typing or recording',
      description:
        'You get the response at once; `paused` follows after `delay`. The fields may be at the top level or in `options`.',
      tag: 'Chats',
      answer: {
        status: 201,
        description: 'Shown',
        ...(answersAsPublic ? { body: PublicPresenceAnswer } : {}),
      },
      errors: ['unknown_recipient', 'unsupported', 'network_refused', 'not_connected'],
    },
    body: SendPresenceRequest,
    async run({ instance, body: { number, presence, delayMs } }) {
      const session = await sessions.connected(instance);
      const chat = await session.resolve(parseAddress(number, 'number'), 'number');
      await session.showPresence(chat, presence);
      if (presence === 'composing' || presence === 'recording') {
        void pauseLater(session, chat, delayMs);
      }
      return answersAsPublic ? { presence } : undefined;
    },
  });
}

function updateMessage({ sessions, log, answersAsPublic }: GatewayServices): Route {
  return route({
    method: 'post',
    path: '/chat/updateMessage/:instance',
    access: 'instance',
    docs: {
      operationId: 'updateMessage',
      summary: 'Edit your own message',
      description:
        'Changes a text, or the caption of a voice message. If the network would replace the whole voice message, you get `not_editable`.',
      tag: 'Chats',
      answer: {
        status: 200,
        description: 'Changed',
        ...(answersAsPublic ? { body: PublicEditAnswer } : {}),
      },
      errors: [
        'unknown_recipient',
        'not_editable',
        'message_not_found',
        'unsupported',
        'network_refused',
        'not_connected',
      ],
    },
    body: UpdateMessageRequest,
    async run({ instance, body: { number, text, key } }) {
      const session = await sessions.connected(instance);
      if (session.editMessage === undefined) {
        throw new UnsupportedOperation('changing a message', instance.transport);
      }
      const chat = await session.resolve(parseAddress(number, 'number'), 'number');
      const logged = await log.find(instance.id, key.id);
      const addresses = (await session.addressesOf?.(chat.jid)) ?? [chat.jid];
      if (!logged?.settled || !addresses.includes(logged.key.remoteJid)) {
        throw new GatewayError('message_not_found', 'key.id: the chat has no message with this id');
      }
      if (!logged.key.fromMe || key.fromMe === false) {
        throw new GatewayError('not_editable', 'key: you can edit only your own messages');
      }
      const kind = 'conversation' in logged.message ? 'text' : 'voice';
      await session.editMessage({ chat, key: logged.key, text, kind });
      await log.edit(logged, text);
      return answersAsPublic ? editedMessage(logged, text) : undefined;
    },
  });
}

function editedMessage(
  { key, message, timestampSeconds, status }: LoggedMessage,
  text: string,
): z.input<typeof PublicEditAnswer> {
  return {
    key,
    message: withText(message, text),
    messageTimestamp: String(timestampSeconds),
    status,
  };
}
