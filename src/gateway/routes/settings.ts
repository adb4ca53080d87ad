/**
 * Settings (messaging-gateway.md "Set settings"; `/settings/find` as on the public server), and
 * privacy settings (messaging-gateway.md "Fetch privacy settings"; decisions B "Records").
 */

import { UnsupportedOperation } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import {
  InstanceSettings,
  SetSettingsAnswer,
  SetSettingsRequest,
  settingsAnswer,
} from 'soundpost-contract/gateway-instances';
import { PrivacySettings } from 'soundpost-contract/gateway-operations';
import { foreignSwitches } from 'soundpost-contract/gateway-switches';
import { type Route, route } from '../route.ts';
import type { GatewayServices } from '../services.ts';

export function settingsRoutes({ instances, sessions }: GatewayServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/settings/set/:instance',
      access: 'instance',
      docs: {
        operationId: 'setSettings',
        summary: 'Change the settings of an instance',
        description: 'An omitted setting keeps its value. The response has all settings but `msgCall`.',
        tag: 'Settings',
        answer: { status: 201, description: 'The settings as they are now', body: SetSettingsAnswer },
        errors: [],
      },
      body: SetSettingsRequest,
      foreign: foreignSwitches.settings,
      async run({ instance, body }) {
        const changed = await instances.changeSettings(instance, body);
        const session = await sessions.of(changed);
        await session.applySettings?.(changed.settings);
        return { settings: { instanceName: changed.name, settings: settingsAnswer(changed.settings) } };
      },
    }),
    route({
      method: 'get',
      path: '/settings/find/:instance',
      access: 'instance',
      docs: {
        operationId: 'findSettings',
        summary: 'Read the settings of an instance',
        tag: 'Settings',
        answer: { status: 200, description: 'All seven settings', body: InstanceSettings },
        errors: [],
      },
      run: async ({ instance }) => instance.settings,
    }),
    route({
      method: 'get',
      path: '/chat/fetchPrivacySettings/:instance',
      access: 'instance',
      docs: {
        operationId: 'fetchPrivacySettings',
        summary: 'Read the privacy settings of the account',
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
          throw new GatewayError('network_refused', 'the network returned an unknown privacy setting', {
            cause: shown.error,
          });
        }
        return shown.data;
      },
    }),
  ];
}
