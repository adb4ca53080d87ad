// A script of its own, before anything is shown, so that the page never flashes in the other colours.
try {
  const theme = localStorage.getItem('soundpost.theme');
  if (theme === 'light' || theme === 'dark') {
    document.documentElement.dataset.theme = theme;
  }
} catch {
  // Storage may be forbidden; then the system's colours hold.
}
