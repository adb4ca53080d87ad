/**
 * The operations of the interface beside sending audio (messaging-gateway.md "Endpoints"; decisions B for the alias).
 * None is built yet, so each answers 501 to whoever may use the instance, instead of pretending to have worked.
 */
import { Router } from 'express';
import type { Access } from '../middleware/access.ts';
import { otherMethods } from '../middleware/error-answer.ts';
import { UnsupportedOperation } from '../transport.ts';

interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly paths: readonly string[];
}

const operations: readonly Operation[] = [
  { name: 'set settings', method: 'POST', paths: ['/settings/set'] },
  { name: 'update message', method: 'POST', paths: ['/chat/updateMessage'] },
  { name: 'send group invite', method: 'POST', paths: ['/group/sendInvite'] },
  { name: 'send presence', method: 'POST', paths: ['/chat/sendPresence'] },
  {
    name: 'update block status',
    method: 'POST',
    paths: ['/message/updateBlockStatus', '/chat/updateBlockStatus'],
  },
  { name: 'find contacts', method: 'POST', paths: ['/chat/findContacts'] },
  { name: 'find chats', method: 'POST', paths: ['/chat/findChats'] },
  { name: 'fetch group invite code', method: 'GET', paths: ['/group/inviteCode'] },
  { name: 'fetch all group members', method: 'GET', paths: ['/group/participants'] },
  { name: 'fetch privacy settings', method: 'GET', paths: ['/chat/fetchPrivacySettings'] },
];

export function operationRoutes(access: Access): Router {
  const router = Router();
  for (const { name, method, paths } of operations) {
    for (const path of paths) {
      router
        .route(`${path}/:instance`)
        [method === 'GET' ? 'get' : 'post'](access.requireInstance, (request) => {
          throw new UnsupportedOperation(name, access.instanceOf(request).transport);
        })
        .all(otherMethods(method));
    }
  }
  return router;
}
