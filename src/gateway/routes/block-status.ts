/** `POST /message/updateBlockStatus/{instance}` (messaging-gateway.md "Update block status"; decisions B for the alias). */

import { parseAddress } from 'soundpost-chat/address';
import { UnsupportedOperation } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { BlockStatusRequest, PublicBlockAnswer } from 'soundpost-contract/gateway-operations';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

const paths = [
  { path: '/message/updateBlockStatus/:instance', operationId: 'updateBlockStatus' },
  { path: '/chat/updateBlockStatus/:instance', operationId: 'updateBlockStatusOfChat' },
] as const;

export function blockStatusRoutes({ sessions, answersAsPublic }: GatewayServices): Route[] {
  return paths.map(({ path, operationId }) =>
    route({
      method: 'post',
      path,
      access: 'instance',
      docs: {
        operationId,
        summary: 'Block or unblock a contact',
        description: 'What a blocked contact sends bounces, and so does what is sent to it.',
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
