/** `POST /chat/updateMessage/{instance}` (messaging-gateway.md "Update message"; decisions B). */

import { parseAddress } from 'soundpost-chat/address';
import type { LoggedMessage } from 'soundpost-chat/message-record';
import { UnsupportedOperation } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { PublicEditAnswer, UpdateMessageRequest } from 'soundpost-contract/gateway-operations';
import type { z } from 'zod';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

export function updateMessageRoutes({ sessions, log, answersAsPublic }: GatewayServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/chat/updateMessage/:instance',
      access: 'instance',
      docs: {
        operationId: 'updateMessage',
        summary: 'Change the text of an own message',
        description:
          'A text message changes its text; a voice message gets or changes a caption, the sound stays. Networks on which that would replace the whole voice message answer `not_editable`.',
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
        if (logged === undefined || !logged.settled || logged.key.remoteJid !== chat.jid) {
          throw new GatewayError('message_not_found', 'key.id: the chat holds no message with this id');
        }
        if (!logged.key.fromMe || key.fromMe === false) {
          throw new GatewayError('not_editable', 'key: only own messages can be changed');
        }
        const kind = 'audioMessage' in logged.message ? 'voice' : 'text';
        await session.editMessage({ chat, key: logged.key, text, kind });
        await log.edit(logged, text);
        return answersAsPublic ? editedMessage(logged, text) : undefined;
      },
    }),
  ];
}

function editedMessage(
  { key, message, timestampSeconds, status }: LoggedMessage,
  text: string,
): z.input<typeof PublicEditAnswer> {
  return {
    key,
    message:
      'audioMessage' in message
        ? { audioMessage: { ...message.audioMessage, caption: text } }
        : { conversation: text },
    messageTimestamp: String(timestampSeconds),
    status,
  };
}
