// Whoever clicked on an invitation is asked which instance enters the group.
import * as connection from './connection.js';
import { element } from './shared/elements.js';
import { announce, byId, state } from './state.js';

/** Takes the code out of the address and asks. @param {(instance: object) => Promise<void>} choose shows an instance */
export async function answerInvitation(choose) {
  const address = new URL(location.href);
  const inviteCode = address.searchParams.get('invite');
  if (inviteCode === null) {
    return;
  }
  address.searchParams.delete('invite');
  history.replaceState(null, '', address);
  const able = state.instances.filter(({ transport }) => transport === 'loopback');
  byId('invited').replaceChildren(
    ...able.map(({ id, name }) => element('option', { value: id, textContent: name })),
  );
  const dialog = byId('invitation');
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  if (dialog.returnValue !== 'enter') {
    return;
  }
  const instance = able.find(({ id }) => id === byId('invited').value);
  const entered = await connection
    .post(`instances/${instance.id}/groups`, { inviteCode })
    .catch((error) => (error instanceof connection.Refused ? null : Promise.reject(error)));
  await choose(instance);
  announce(
    entered === null ? 'This invitation is no longer good.' : `${instance.name} has entered the group.`,
  );
  byId('notice').textContent = entered === null ? 'This invitation is no longer good.' : '';
}
