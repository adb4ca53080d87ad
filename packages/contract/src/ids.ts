/**
 * The identifiers that cross a wire (audio-extraction.md, "Resources and their fields"; decisions
 * A2, A4). Each is a prefix and 16 hexadecimal digits: 64 random bits, which nobody can guess but
 * which are never the authorisation.
 */
import { z } from 'zod';

const SIXTEEN_HEX = '[0-9a-f]{16}';

export const JobId = z
  .string()
  .regex(new RegExp(`^job_${SIXTEEN_HEX}$`), 'must be of the form job_<16 hex>')
  .meta({ example: 'job_5f0c2a9be41d7783' });
export const BatchId = z
  .string()
  .regex(new RegExp(`^batch_${SIXTEEN_HEX}$`), 'must be of the form batch_<16 hex>')
  .meta({ example: 'batch_c04be1f2a93d5570' });
export const UploadId = z
  .string()
  .regex(new RegExp(`^upl_${SIXTEEN_HEX}$`), 'must be of the form upl_<16 hex>')
  .meta({ example: 'upl_3b9e60f4d2a81c57' });

/** Names an output within its job; a lone `output` is {@link ONLY_OUTPUT} (decisions A8). */
export const OutputName = z
  .string()
  .regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 characters of a-z, 0-9 and -')
  .meta({ example: 'audio' });
export const ONLY_OUTPUT = 'audio';

/** A tenant is the id part of an API key (decisions A6). */
export const TenantId = z.string().regex(/^[a-z0-9]{8}$/, 'must be 8 characters of a-z and 0-9');
