import type { Line } from './connection.ts';
import { bareJid, isLid } from './jids.ts';

/**
 * The address by phone number, where it can be known: WhatsApp also writes numbers of its own (`…@lid`), which tell nobody
 * who is meant. @param known the same person's address by number, if the event carried it
 */
export async function phoneJid(
  { socket }: Line,
  jid: string | null | undefined,
  known?: string | null,
): Promise<string | undefined> {
  if (!jid) {
    return undefined;
  }
  if (!isLid(jid)) {
    return bareJid(jid);
  }
  const found = known && !isLid(known) ? known : await socket.signalRepository.lidMapping.getPNForLID(jid);
  return bareJid(found ?? jid);
}
