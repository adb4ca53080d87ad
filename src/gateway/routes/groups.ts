/**
 * Groups (messaging-gateway.md: "Send group invite", "Fetch group invite code", "Fetch all group
 * members").
 */
import { randomBytes } from 'node:crypto';
import { parseAddress } from 'soundpost-chat/address';
import type { Instance } from 'soundpost-chat/instances';
import { UnsupportedOperation } from 'soundpost-chat/transport';
import {
  AcceptInviteAnswer,
  AcceptInviteQuery,
  GroupQuery,
  InviteCodeAnswer,
  ParticipantsAnswer,
  RevokeInviteAnswer,
  SendInviteAnswer,
  SendInviteRequest,
} from 'soundpost-contract/gateway-operations';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

const groupErrors = ['group_not_found', 'unsupported', 'network_refused', 'not_connected'] as const;

export function groupRoutes(services: GatewayServices): Route[] {
  const { sessions } = services;
  return [
    sendInvite(services),
    ...inviteCodes(services),
    route({
      method: 'get',
      path: '/group/participants/:instance',
      access: 'instance',
      docs: {
        operationId: 'fetchParticipants',
        summary: 'List the members of a group',
        tag: 'Groups',
        answer: { status: 200, description: 'Everybody in the group', body: ParticipantsAnswer },
        errors: groupErrors,
      },
      query: GroupQuery,
      async run({ instance, query }) {
        const session = await sessions.connected(instance);
        const participants = await session.participants?.(parseAddress(query.groupJid, 'groupJid'));
        return {
          participants: (participants ?? unsupported('listing members', instance)).map(
            ({ jid, admin, name }) => ({ id: jid, admin, name }),
          ),
        };
      },
    }),
  ];
}

function inviteCodes({ sessions }: GatewayServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/group/inviteCode/:instance',
      access: 'instance',
      docs: {
        operationId: 'fetchInviteCode',
        summary: 'Read the invite code of a group',
        tag: 'Groups',
        answer: { status: 200, description: 'The code that is good now', body: InviteCodeAnswer },
        errors: groupErrors,
      },
      query: GroupQuery,
      async run({ instance, query }) {
        const session = await sessions.connected(instance);
        const invitation = await session.inviteCode?.(parseAddress(query.groupJid, 'groupJid'));
        return invitation ?? unsupported('inviting', instance);
      },
    }),
    route({
      method: 'post',
      path: '/group/revokeInviteCode/:instance',
      access: 'instance',
      docs: {
        operationId: 'revokeInviteCode',
        summary: 'Replace the invite code of a group',
        tag: 'Groups',
        answer: { status: 201, description: 'The new code', body: RevokeInviteAnswer },
        errors: groupErrors,
      },
      query: GroupQuery,
      async run({ instance, query }) {
        const session = await sessions.connected(instance);
        const invitation = await session.revokeInvite?.(parseAddress(query.groupJid, 'groupJid'));
        return {
          revoked: true as const,
          ...(invitation ?? unsupported('revoking an invite code', instance)),
        };
      },
    }),
    route({
      method: 'get',
      path: '/group/acceptInviteCode/:instance',
      access: 'instance',
      changes: true,
      docs: {
        operationId: 'acceptInviteCode',
        summary: 'Join a group by its invite code',
        tag: 'Groups',
        answer: { status: 200, description: 'The instance is in the group', body: AcceptInviteAnswer },
        errors: groupErrors,
      },
      query: AcceptInviteQuery,
      async run({ instance, query }) {
        const session = await sessions.connected(instance);
        const entered = await session.acceptInvite?.(query.inviteCode);
        return { accepted: true as const, ...(entered ?? unsupported('entering a group', instance)) };
      },
    }),
  ];
}

function sendInvite({ sessions, texts }: GatewayServices): Route {
  return route({
    method: 'post',
    path: '/group/sendInvite/:instance',
    access: 'instance',
    docs: {
      operationId: 'sendInvite',
      summary: 'Send the invite link of a group to numbers',
      description: 'If one of the numbers is unknown, nobody is invited.',
      tag: 'Groups',
      answer: { status: 200, description: 'Everybody was sent the link', body: SendInviteAnswer },
      errors: ['unknown_recipient', 'rate_limited', ...groupErrors],
    },
    body: SendInviteRequest,
    async run({ instance, body, gone }) {
      const session = await sessions.connected(instance);
      const hand = session.sendInvite?.bind(session);
      const group = parseAddress(body.groupJid, 'groupJid');
      if (hand === undefined || session.inviteCode === undefined) {
        return unsupported('inviting', instance);
      }
      const { inviteUrl, inviteCode } = await session.inviteCode(group);
      const description = body.description ?? '';
      const text = [description, inviteUrl].filter((part) => part !== '').join('\n\n');
      const chats = await Promise.all(
        body.numbers.map((number, index) =>
          session.resolve(parseAddress(number, `numbers[${index}]`), `numbers[${index}]`),
        ),
      );
      const invites = chats.map((chat) => ({
        messageId: randomBytes(16).toString('hex').toUpperCase(),
        chat,
        group,
        description,
        inviteUrl,
        inviteCode,
        text,
      }));
      await texts.send(instance, session, invites, hand, gone);
      return { send: true as const, inviteUrl };
    },
  });
}

function unsupported(operation: string, { transport }: Instance): never {
  throw new UnsupportedOperation(operation, transport);
}
