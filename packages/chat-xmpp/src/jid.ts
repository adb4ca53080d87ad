/** XMPP addresses (RFC 7622) as text. The gateway stores them bare and in lower case. */

/** Without the resource. */
export function bareOf(jid: string): string {
  const slash = jid.indexOf('/');
  return (slash === -1 ? jid : jid.slice(0, slash)).toLowerCase();
}

/** The part after the first slash: an account's device, or a nickname in a room. */
export function resourceOf(jid: string): string {
  const slash = jid.indexOf('/');
  return slash === -1 ? '' : jid.slice(slash + 1);
}

export function localOf(jid: string): string {
  const bare = bareOf(jid);
  return bare.slice(0, Math.max(0, bare.indexOf('@')));
}

export function domainOf(jid: string): string {
  const bare = bareOf(jid);
  return bare.slice(bare.indexOf('@') + 1);
}
