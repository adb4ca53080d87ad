/** `POST /chat/findContacts/{instance}` and `POST /chat/findChats/{instance}` (messaging-gateway.md; decisions B "Records"). */
import { z } from 'zod';
import {
  ChatRecord,
  ContactRecord,
  FindChatsRequest,
  FindContactsRequest,
  type FindRequest,
} from '../../contract/gateway-operations.ts';
import { meansJid } from '../address.ts';
import { chatRecords } from '../chat-records.ts';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

const DEFAULT_PAGE_SIZE = 50;

export function findRoutes({ sessions, log }: GatewayServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/chat/findContacts/:instance',
      access: 'instance',
      docs: {
        operationId: 'findContacts',
        summary: 'List the contacts and groups of the instance, or one of them',
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
        return found(contacts, body);
      },
    }),
    route({
      method: 'post',
      path: '/chat/findChats/:instance',
      access: 'instance',
      docs: {
        operationId: 'findChats',
        summary: 'List the chats of the instance',
        description: 'Those with messages first, the newest at the top.',
        tag: 'Chats',
        answer: { status: 200, description: 'Those found, maybe none', body: z.array(ChatRecord) },
        errors: ['network_refused', 'not_connected'],
      },
      body: FindChatsRequest,
      async run({ instance, body }) {
        const session = await sessions.connected(instance);
        return found(await chatRecords(instance, session, log), body);
      },
    }),
  ];
}

function found<Found extends { remoteJid: string; isGroup: boolean }>(
  all: readonly Found[],
  { where, page, offset }: FindRequest,
): Found[] {
  const wanted = [where?.id, where?.remoteJid].filter((text) => text !== undefined && text !== null);
  const matching = all.filter((record) =>
    wanted.every((text) => meansJid(text, record.remoteJid, record.isGroup)),
  );
  if (!page && !offset) {
    return matching;
  }
  const size = offset ?? DEFAULT_PAGE_SIZE;
  const start = ((page ?? 1) - 1) * size;
  return matching.slice(start, start + size);
}
