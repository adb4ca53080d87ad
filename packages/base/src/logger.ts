/** A logger is made once, where a process starts, and handed in; everything else needs only its type. */
export type { Logger } from 'pino';
