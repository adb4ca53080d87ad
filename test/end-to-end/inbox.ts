/** The other side of the loopback network: what has arrived in a chat. */
import type { Json } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';

/** One of the three people that every loopback instance knows. */
export const ada = { number: '12025550101', jid: '12025550101@people.loopback' };

/** @param access a header that opens the inbox */
export async function messagesTo(
  gateway: string,
  jid: string,
  access: Record<string, string>,
): Promise<Json[]> {
  const response = await fetch(`${gateway}/inbox/api/instances/main/chats/${jid}/messages`, {
    headers: access,
  });
  if (!response.ok) {
    throw new Error(`the inbox answered ${response.status}`);
  }
  return (await response.json()) as Json[];
}

/** Does what the page does when somebody on the other side of `main` opens a chat or starts a player. */
export async function playOtherSide(gateway: string, what: string, apikey: string): Promise<void> {
  const response = await fetch(`${gateway}/inbox/api/instances/main/${what}`, {
    method: 'POST',
    headers: { apikey },
  });
  if (!response.ok) {
    throw new Error(`the inbox answered ${response.status}`);
  }
}
