/** What is said to whoever listens to the page. */
export function announce(text: string): void {
  const region = document.getElementById('announcements');
  if (region !== null) region.textContent = text;
}
