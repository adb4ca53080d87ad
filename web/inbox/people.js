// Who is played in the open chat, and what each can do besides replying: call the instance, and block it.
import { beginCall } from './calls.js';
import * as connection from './connection.js';
import { element } from './shared/elements.js';
import { attempt } from './sign-in.js';
import { announce, byId, chatPath, state } from './state.js';

export async function loadPeople() {
  const { chat } = state;
  const people = await connection.get(`${chatPath(chat)}/people`);
  if (state.chat !== chat) {
    return;
  }
  const before = state.persona?.jid;
  state.people = people;
  state.persona = people.find(({ jid }) => jid === before) ?? people[0] ?? null;
  const choice = byId('persona');
  choice.replaceChildren(
    ...people.map(({ jid, name }) => element('option', { value: jid, textContent: name })),
  );
  choice.value = state.persona?.jid ?? '';
  showControls();
}

/** Name of the instance, or of somebody in the open chat. */
export function nameOf(jid) {
  const { instance, people, chat } = state;
  if (jid === instance.ownJid) {
    return instance.name;
  }
  return (
    people.find((person) => person.jid === jid)?.name ?? (jid === chat.jid ? chat.name : jid.split('@')[0])
  );
}

function showControls() {
  const { persona, instance, chat } = state;
  byId('person-controls').hidden = persona === null;
  byId('blocked-note').hidden = !persona?.hasBlocked;
  if (persona === null) {
    return;
  }
  const first = persona.name.split(' ')[0];
  byId('call').setAttribute('aria-label', `Call ${instance.name} as ${persona.name}`);
  byId('call').title = `Call ${instance.name} as ${first}`;
  const block = byId('block');
  block.setAttribute('aria-pressed', String(persona.hasBlocked));
  block.setAttribute('aria-label', `${persona.name} blocks ${instance.name}`);
  block.title = persona.hasBlocked
    ? `Let ${first} hear ${instance.name} again`
    : `Let ${first} block ${instance.name}`;
  byId('blocked-note').textContent =
    `${persona.name} has blocked ${instance.name}${chat.isGroup ? ', which counts outside of groups' : ': nothing gets through'}.`;
}

byId('persona').addEventListener('change', (event) => {
  state.persona = state.people.find(({ jid }) => jid === event.target.value) ?? null;
  showControls();
});

byId('call').addEventListener('click', () => {
  const { instance, persona } = state;
  void attempt(() => beginCall(instance, persona));
});

byId('block').addEventListener('click', () => {
  const { instance, persona } = state;
  void attempt(async () => {
    const blocked = !persona.hasBlocked;
    await connection.post(`instances/${instance.id}/blocks`, { as: persona.jid, blocked });
    persona.hasBlocked = blocked;
    showControls();
    announce(`${persona.name} ${blocked ? 'blocks' : 'no longer blocks'} ${instance.name}`);
  });
});
