/** Loaded into a process with `node --import`. */
export {};
