// What every part of the page uses of the page.
import { element, icon } from './shared/elements.js';

/** @param {string} id */
export const byId = (id) => document.getElementById(id);

/** Says something to whoever listens to the page. */
export function announce(text) {
  byId('announcements').textContent = text;
}

/** Puts terms and what they are into a list. @param {[string, string | Node | null | undefined][]} rows those without a value are left out */
export function showFacts(list, rows) {
  list.replaceChildren(
    ...rows
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([term, value]) =>
        element('div', {}, element('dt', { textContent: term }), element('dd', {}, value)),
      ),
  );
}

/** Sets the text only where it differs: a live region says what is set, also when it was there already. */
export function setText(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** @param {object} properties of the button */
export function iconButton(name, label, properties = {}) {
  return element('button', { type: 'button', ...properties }, icon(name), label);
}

/** Asks before something that cannot be undone. @returns {Promise<boolean>} */
export function confirmed({ title, text, yes }) {
  byId('confirm-title').textContent = title;
  byId('confirm-text').textContent = text;
  byId('confirm-yes').textContent = yes;
  const dialog = byId('confirm');
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

/** Runs the work of a button, which can meanwhile not be pressed again; what fails is said in `fault`. */
export async function during(button, fault, work) {
  fault.textContent = '';
  const hadFocus = document.activeElement === button;
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    fault.textContent = error.message;
  } finally {
    button.disabled = false;
    // A button that is disabled loses it, and who works by keyboard the place.
    if (hadFocus && document.activeElement === document.body) {
      button.focus();
    }
  }
}
