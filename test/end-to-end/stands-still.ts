/** Loaded into a process by `--import`: from SIGUSR2 on its event loop stands still. */
process.on('SIGUSR2', () => {
  for (;;);
});
