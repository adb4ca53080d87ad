/** Every route that needs a key: what the application mounts, and what the OpenAPI document tells of. */
import type { Route } from '../route.ts';
import type { GatewayServices } from '../services.ts';
import { blockStatusRoutes } from './block-status.ts';
import { findRoutes } from './find.ts';
import { groupRoutes } from './groups.ts';
import { instanceRoutes } from './instances.ts';
import { presenceRoutes } from './presence.ts';
import { privacyRoutes } from './privacy.ts';
import { sendAudioRoutes, sendTextRoutes } from './send.ts';
import { settingsRoutes } from './settings.ts';
import { updateMessageRoutes } from './update-message.ts';
import { webhookRoutes } from './webhook.ts';

export function keyedRoutes(services: GatewayServices): Route[] {
  return [
    ...sendAudioRoutes(services),
    ...sendTextRoutes(services),
    ...settingsRoutes(services),
    ...updateMessageRoutes(services),
    ...groupRoutes(services),
    ...presenceRoutes(services),
    ...blockStatusRoutes(services),
    ...findRoutes(services),
    ...privacyRoutes(services),
    ...instanceRoutes(services),
    ...webhookRoutes(services),
  ];
}
