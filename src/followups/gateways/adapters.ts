/** The adapter of each GATEWAY_KIND. */
import type { GatewayAdapter } from './adapter.ts';
import { other, soundpost } from './soundpost.ts';
import { waha } from './waha.ts';
import { wuzapi } from './wuzapi.ts';

export const gatewayAdapters = { soundpost, other, waha, wuzapi } as const satisfies Record<
  string,
  GatewayAdapter
>;
export type GatewayKind = keyof typeof gatewayAdapters;
