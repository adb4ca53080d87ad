/** Every route that the gateway's application has mounted, read from the application itself. */
import { createApp, keyedRoutes } from '../../src/gateway/app.ts';
import { Viewers } from '../../src/gateway/inbox/viewer.ts';
import { Access } from '../../src/gateway/middleware/access.ts';
import type { GatewayServices } from '../../src/gateway/services.ts';

interface Layer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> };
  /** Where a router is mounted. */
  readonly rawPath: string;
  readonly handle: { readonly stack?: readonly Layer[] };
}

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** Nothing of it is called: the routes are only looked at. */
const services = {
  viewers: new Viewers({} as never),
  brands: ['Messenger', 'WhatsApp'],
  access: new Access({} as never),
  trustProxy: 0,
  corsOrigins: [],
} as Partial<GatewayServices> as GatewayServices;

/** Such as `POST /settings/set/:instance`; the inbox's are among them. */
export function mountedRoutes(): string[] {
  return routesOf((createApp(services).router as unknown as { stack: readonly Layer[] }).stack, '');
}

/** The same for the routes of the table alone, with who may use them and what they answer. */
export function tableRoutes(): { name: string; access: 'instance' | 'gateway'; status: number }[] {
  return keyedRoutes(services).map(({ method, path, access, docs }) => ({
    name: `${method.toUpperCase()} ${path}`,
    access,
    status: docs.answer.status,
  }));
}

function routesOf(layers: readonly Layer[], prefix: string): string[] {
  return layers.flatMap(({ route, rawPath, handle }) => {
    if (route !== undefined) {
      return methods
        .filter((method) => route.methods[method])
        .map((method) => `${method.toUpperCase()} ${prefix}${route.path}`);
    }
    return handle.stack ? routesOf(handle.stack, `${prefix}${rawPath === '/' ? '' : rawPath}`) : [];
  });
}
