// Light or dark: as the system has it, until somebody chooses; the choice is kept in this browser.
import { byId } from './page.js';

const STORE = 'soundpost.theme';
const system = matchMedia('(prefers-color-scheme: dark)');
/** Called when the colours change; what draws on a canvas has to draw again. */
const listeners = new Set();

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme === undefined ? system.matches : theme === 'dark';
}

function show() {
  const dark = isDark();
  byId('theme-icon').setAttribute('href', dark ? '#icon-sun' : '#icon-moon');
  byId('theme').setAttribute('aria-label', dark ? 'Light colours' : 'Dark colours');
  byId('theme').title = dark ? 'Light colours' : 'Dark colours';
  for (const listener of listeners) {
    listener();
  }
}

/** @param {() => void} listener @returns {() => void} ends it */
export function onColours(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

byId('theme').addEventListener('click', () => {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(STORE, theme);
  } catch {
    // Storage may be forbidden; the choice then holds as long as the page.
  }
  show();
});
system.addEventListener('change', show);
show();
