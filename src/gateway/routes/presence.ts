/** `POST /chat/sendPresence/{instance}` (messaging-gateway.md "Send presence"; decisions B). */
import { setTimeout as wait } from 'node:timers/promises';
import { parseAddress } from 'soundpost-chat/address';
import type { Chat, Session } from 'soundpost-chat/transport';
import { PublicPresenceAnswer, SendPresenceRequest } from 'soundpost-contract/gateway-operations';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

export function presenceRoutes({ sessions, answersAsPublic, closing, logger }: GatewayServices): Route[] {
  /** Not awaited by the request; a gateway that stops ends the presence early. */
  const pauseLater = async (session: Session, chat: Chat, delayMs: number): Promise<void> => {
    await wait(delayMs, undefined, { signal: closing, ref: false }).catch(() => undefined);
    await session
      .showPresence(chat, 'paused')
      .catch((error: unknown) => logger.warn({ err: error }, 'a presence was not ended'));
  };
  return [
    route({
      method: 'post',
      path: '/chat/sendPresence/:instance',
      access: 'instance',
      docs: {
        operationId: 'sendPresence',
        summary: 'Show somebody that a message is being written or recorded',
        description:
          'Answers at once; `paused` follows after `delay`. The fields may stand at the top level or inside `options`.',
        tag: 'Chats',
        answer: {
          status: 201,
          description: 'Shown',
          ...(answersAsPublic ? { body: PublicPresenceAnswer } : {}),
        },
        errors: ['unknown_recipient', 'network_refused', 'not_connected'],
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
    }),
  ];
}
