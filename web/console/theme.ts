/** Light or dark: as the system has it, until somebody chooses; the choice is kept in this browser. */
import { useEffect, useState } from 'preact/hooks';

type Theme = 'light' | 'dark';

const STORE = 'soundpost.theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme === undefined ? system.matches : theme === 'dark';
}

export function chooseTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(STORE, theme);
  } catch {
    // Storage may be forbidden; the choice then holds as long as the page.
  }
  tell();
}

/** Calls back when the colours change: what draws on a canvas has to draw again. @returns ends it */
export function onColours(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useDark(): boolean {
  const [dark, setDark] = useState(isDark);
  useEffect(() => onColours(() => setDark(isDark())), []);
  return dark;
}

function tell(): void {
  for (const listener of listeners) listener();
}

system.addEventListener('change', tell);
