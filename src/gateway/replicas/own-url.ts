/** Where other replicas reach this one, when nobody has said so. */
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';

const everywhere = new Set(['0.0.0.0', '::']);

/** The address that it listens on; of a server that listens on all of them the first that is not this machine's alone. */
export function ownUrl({ address, port }: AddressInfo): string {
  const host = everywhere.has(address) ? (firstOutside() ?? '127.0.0.1') : address;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function firstOutside(): string | undefined {
  const outside = Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    // Link-local addresses mean something only together with an interface.
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'));
  return (outside.find(({ family }) => family === 'IPv4') ?? outside[0])?.address;
}
