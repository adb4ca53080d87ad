/** A logger is made where a process starts and passed in: other code needs only its type. */
export type { Logger } from 'pino';
