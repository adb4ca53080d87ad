/** The messaging gateway, for managing its instances and picking whom to send to: its own key, asked for once a tab. */

const STORE = 'soundpost.console.gateway';

/** Where the service says that browsers reach its gateway; undefined where it has none of its own. */
export function gatewayAddress(): string | undefined {
  const address = document.querySelector<HTMLMetaElement>('meta[name="soundpost-gateway"]')?.content;
  return address === '' ? undefined : address;
}

export const gatewayKey = (): string | undefined => sessionStorage.getItem(STORE) ?? undefined;
export const keepGatewayKey = (key: string): void => sessionStorage.setItem(STORE, key);

/** When somebody signs out. */
export function forgetGateway(): void {
  sessionStorage.removeItem(STORE);
}
