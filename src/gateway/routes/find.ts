/** `POST /chat/findContacts/{instance}` and `POST /chat/findChats/{instance}` (messaging-gateway.md; decisions B "Records"). */

import { meansJid } from 'soundpost-chat/address';
import {
  ChatRecord,
  ContactRecord,
  FindChatsRequest,
  FindContactsRequest,
} from 'soundpost-contract/gateway-operations';
import { z } from 'zod';
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
        // Public clients name a message here: it means the chat that holds it.
        const holder = body.where?.id ? await log.find(instance.id, body.where.id) : undefined;
        return found(await chatRecords(instance, session, log), body, holder?.key.remoteJid);
      },
    }),
  ];
}

/** @param alsoMeant JID that `where.id` means besides the one it is */
function found<Found extends { remoteJid: string; isGroup: boolean }>(
  all: readonly Found[],
  { where, page, offset }: z.output<typeof FindChatsRequest>,
  alsoMeant?: string,
): Found[] {
  // Public clients fill what they do not know with nothing.
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
