/** Whoever clicked on an invitation is asked which instance enters the group. */
import type { InboxInstance } from 'soundpost-contract/inbox';
import * as connection from './connection.ts';
import { element } from './elements.ts';
import { announce, byId, state } from './state.ts';

const dialog = byId('invitation', HTMLDialogElement);
const invited = byId('invited', HTMLSelectElement);

/** Takes the code out of the address and asks. @param choose shows an instance */
export async function answerInvitation(choose: (instance: InboxInstance) => Promise<void>): Promise<void> {
  const address = new URL(location.href);
  const inviteCode = address.searchParams.get('invite');
  if (inviteCode === null) {
    return;
  }
  address.searchParams.delete('invite');
  history.replaceState(null, '', address);
  const able = state.instances.filter(({ transport }) => transport === 'loopback');
  const instance = await chosenOf(able);
  if (instance === undefined) {
    return;
  }
  const isGood = await enter(instance, inviteCode);
  await choose(instance);
  announce(isGood ? `${instance.name} joined the group.` : 'This invitation is no longer valid.');
  byId('notice').textContent = isGood ? '' : 'This invitation is no longer valid.';
}

async function chosenOf(able: readonly InboxInstance[]): Promise<InboxInstance | undefined> {
  invited.replaceChildren(...able.map(({ id, name }) => element('option', { value: id, textContent: name })));
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue === 'enter' ? able.find(({ id }) => id === invited.value) : undefined;
}

/** @returns whether the invitation was good */
async function enter({ id }: InboxInstance, inviteCode: string): Promise<boolean> {
  try {
    await connection.ask(`instances/${id}/groups`, { inviteCode });
    return true;
  } catch (error) {
    if (error instanceof connection.Refused) {
      return false;
    }
    throw error;
  }
}
