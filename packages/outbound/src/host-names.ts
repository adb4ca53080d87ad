/** Names that mean something on the local network only, refused before they are resolved. */

const localNames: readonly { suffix: string; source: string }[] = [
  { suffix: 'localhost', source: 'RFC 6761 §6.3' },
  { suffix: 'local', source: 'multicast DNS, RFC 6762' },
  {
    suffix: 'internal',
    source: 'reserved for private use by ICANN, 2024; clouds name their metadata servers in it',
  },
  { suffix: 'home.arpa', source: 'RFC 8375' },
  { suffix: 'onion', source: 'RFC 7686' },
];

/** Whether this is a host name as DNS takes it (RFC 1123 §2.1; underscores occur in practice), without a trailing dot. */
export function isHostName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
}

/** @returns why the name is local, for the log, or undefined for one that public DNS may hold. */
export function localName(name: string): string | undefined {
  if (!name.includes('.') && name !== 'localhost') return `${name} is a single label`;
  const row = localNames.find(({ suffix }) => name === suffix || name.endsWith(`.${suffix}`));
  return row && `.${row.suffix} is not public (${row.source})`;
}
