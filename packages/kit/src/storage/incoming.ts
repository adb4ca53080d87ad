/** The bytes of uploads that arrive in pieces, over several requests and processes, before they are objects. */
import type { Readable } from 'node:stream';

/** Fails what is not done in time. */
export type InTime = <Result>(operation: string, work: Promise<Result>) => Promise<Result>;

/** Who may touch an upload is decided by its lease, which the caller has. */
export interface IncomingUploads {
  /** To be called once, before anything else; the upload's record is there by then. */
  create(file: string): Promise<void>;

  /** How much has arrived; undefined when it is not here, or no longer. */
  sizeOf(file: string): Promise<number | undefined>;

  /**
   * Appends what the stream gives; resolves to how much has arrived in all. What had arrived before the stream failed stays.
   * Throws ObjectNotFound when the upload is not here any more.
   * @param offset how much has arrived before
   */
  write(file: string, content: Readable, offset: number): Promise<number>;

  /** Forgets what the last `write` has brought, or the end of it. @param sizeBytes what is left */
  truncate(file: string, sizeBytes: number): Promise<void>;

  /**
   * Makes an object of the complete bytes; they are no longer here then. To be called while `sizeOf` knows the upload, so again after a
   * death in the middle. Throws ObjectNotFound when a bucket has lost them by itself meanwhile.
   */
  handOver(file: string): Promise<void>;

  /** Removes what is here of an upload; removing what is not here is no error. */
  remove(file: string): Promise<void>;
}

/**
 * What has to be remembered of an upload beside its bytes, where the storage cannot: wherever every process sees it, for as long as the
 * upload is known.
 */
export interface IncomingStates {
  read(file: string): Promise<IncomingState | undefined>;
  /** Changes what is given. What the complete upload has was said when it began. */
  note(file: string, changes: Partial<Omit<IncomingState, 'sizeBytes'>>): Promise<void>;
  forget(file: string): Promise<void>;
}

export interface IncomingState {
  /** Name of the multipart upload. */
  readonly multipart: string;
  /** Of the complete upload. */
  readonly sizeBytes: number;
  readonly arrivedBytes: number;
  /** Where the pieces begin that are too short for a part and lie beside the parts. */
  readonly tails: readonly number[];
}
