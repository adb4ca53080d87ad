/** Who is played in the open chat, and what each can do besides replying: call the instance, and block it. */
import type { InboxPerson } from 'soundpost-contract/inbox';
import { beginCall } from './calls.ts';
import * as connection from './connection.ts';
import { element } from './elements.ts';
import { attempt } from './sign-in.ts';
import { announce, byId, chatPath, type OpenChat, state } from './state.ts';

const choice = byId('persona', HTMLSelectElement);

export async function loadPeople(open: OpenChat): Promise<void> {
  const people = await connection.get<InboxPerson[]>(`${chatPath(open)}/people`);
  if (state.chat !== open.chat) {
    return;
  }
  const before = state.persona?.jid;
  state.people = people;
  state.persona = people.find(({ jid }) => jid === before) ?? people[0] ?? null;
  choice.replaceChildren(
    ...people.map(({ jid, name }) => element('option', { value: jid, textContent: name })),
  );
  choice.value = state.persona?.jid ?? '';
  showControls();
}

/** Name of the instance, or of somebody in the open chat. */
export function nameOf(jid: string): string {
  const { instance, people, chat } = state;
  const known = [
    { jid: instance?.ownJid, name: instance?.name },
    ...people,
    { jid: chat?.jid, name: chat?.name },
  ];
  return known.find((one) => one.jid === jid)?.name ?? jid.split('@')[0] ?? jid;
}

function showControls(): void {
  const { persona, instance, chat } = state;
  byId('person-controls').hidden = persona === null;
  byId('blocked-note').hidden = persona === null || !persona.hasBlocked;
  if (persona === null || instance === null || chat === null) {
    return;
  }
  const [first] = persona.name.split(' ');
  const call = byId('call');
  call.setAttribute('aria-label', `Call ${instance.name} as ${persona.name}`);
  call.title = `Call ${instance.name} as ${first}`;
  const block = byId('block');
  block.setAttribute('aria-pressed', String(persona.hasBlocked));
  block.setAttribute('aria-label', `${persona.name} blocks ${instance.name}`);
  block.title = persona.hasBlocked
    ? `Unblock ${instance.name} as ${first}`
    : `Block ${instance.name} as ${first}`;
  byId('blocked-note').textContent =
    `${persona.name} has blocked ${instance.name}${chat.isGroup ? ' outside of groups' : ': nothing gets through'}.`;
}

choice.addEventListener('change', () => {
  state.persona = state.people.find(({ jid }) => jid === choice.value) ?? null;
  showControls();
});

byId('call').addEventListener('click', () => {
  const { instance, persona } = state;
  if (instance !== null && persona !== null) {
    void attempt(() => beginCall(instance, persona));
  }
});

byId('block').addEventListener('click', () => {
  const { instance, persona } = state;
  if (instance === null || persona === null) {
    return;
  }
  void attempt(async () => {
    const blocked = !persona.hasBlocked;
    await connection.tell(`instances/${instance.id}/blocks`, { as: persona.jid, blocked });
    noteBlocked(persona.jid, blocked);
    showControls();
    announce(`${persona.name} ${blocked ? 'blocks' : 'no longer blocks'} ${instance.name}`);
  });
});

function noteBlocked(jid: string, hasBlocked: boolean): void {
  state.people = state.people.map((person) => (person.jid === jid ? { ...person, hasBlocked } : person));
  state.persona = state.people.find((person) => person.jid === state.persona?.jid) ?? null;
}
