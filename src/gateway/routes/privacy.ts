/** `GET /chat/fetchPrivacySettings/{instance}` (messaging-gateway.md "Fetch privacy settings"; decisions B "Records"). */

import { UnsupportedOperation } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { PrivacySettings } from 'soundpost-contract/gateway-operations';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

export function privacyRoutes({ sessions }: GatewayServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/chat/fetchPrivacySettings/:instance',
      access: 'instance',
      docs: {
        operationId: 'fetchPrivacySettings',
        summary: 'Fetch who may see and do what with the account',
        tag: 'Settings',
        answer: { status: 200, description: 'As the network has it now', body: PrivacySettings },
        errors: ['unsupported', 'network_refused', 'not_connected'],
      },
      async run({ instance }) {
        const session = await sessions.connected(instance);
        if (session.privacySettings === undefined) {
          throw new UnsupportedOperation('reading privacy settings', instance.transport);
        }
        const shown = PrivacySettings.safeParse(await session.privacySettings());
        if (!shown.success) {
          throw new GatewayError('network_refused', 'the network named a privacy setting that is not known', {
            cause: shown.error,
          });
        }
        return shown.data;
      },
    }),
  ];
}
