/**
 * Destinations of a job's files (decisions A8), as its payload keeps them: the displayable part in
 * the clear; the address's query and header values sealed, as they allow writing there.
 */
import { DestinationRequest, filledIn } from 'soundpost-contract/destination';
import { ONLY_OUTPUT, OutputName } from 'soundpost-contract/ids';
import { type AskedOutputs, outputsOf } from 'soundpost-contract/output-request';
import { fileKindOf } from 'soundpost-contract/transcripts';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import { z } from 'zod';
import { type QueuedSource, SecretsForgotten, withoutHeaders } from './sources.ts';

const SealedDestination = z.strictObject({
  /** Without the query. */
  url: z.string(),
  /** Names. */
  headers: z.array(z.string()).optional(),
  /** A {@link DestinationRequest} in JSON; of a job cancelled while it waited, forgotten. */
  sealed: z.string().optional(),
});
type SealedDestination = z.infer<typeof SealedDestination>;

/** The job's, and those of individual outputs. */
export const QueuedDestinations = z.strictObject({
  job: SealedDestination.optional(),
  outputs: z.record(OutputName, SealedDestination).optional(),
});
type QueuedDestinations = z.infer<typeof QueuedDestinations>;

interface AskedDestinations extends AskedOutputs {
  readonly destination?: DestinationRequest | undefined;
}

interface Queued extends AskedOutputs {
  readonly destinations?: QueuedDestinations | undefined;
}

/** A delivery that was asked for again. */
export const DestinationReplay = z.object({
  /** Each replay has its own: its end is announced separately. */
  id: z.string(),
  /** Takes the place of the address of the submission. */
  address: SealedDestination.optional(),
});
export type DestinationReplay = z.infer<typeof DestinationReplay>;

/** Binds a sealed value to its job and output. */
const labelOf = (jobId: string, name: string | undefined): string =>
  `destination of ${jobId}${name === undefined ? '' : ` ${name}`}`;

/** Converts a request into the form that a payload keeps. */
export function sealDestinations(
  sealer: Sealer,
  jobId: string,
  { output, outputs, destination }: AskedDestinations,
): Queued {
  const seal = (request: DestinationRequest, name?: string) => sealDestination(sealer, jobId, name, request);
  const own = outputsOf({ output, outputs }).flatMap((asked) =>
    asked.destination === undefined ? [] : [[asked.name, seal(asked.destination, asked.name)] as const],
  );
  const destinations = {
    ...(destination && { job: seal(destination) }),
    ...(own.length > 0 && { outputs: Object.fromEntries(own) }),
  };
  return {
    ...(output === undefined
      ? { outputs: outputs?.map(withoutDestination) }
      : { output: withoutDestination(output) }),
    ...(Object.keys(destinations).length > 0 && { destinations }),
  };
}

/** @param name undefined: the job's, for all its outputs */
export function sealDestination(
  sealer: Sealer,
  jobId: string,
  name: string | undefined,
  request: DestinationRequest,
): SealedDestination {
  return {
    url: withoutQuery(request.url),
    ...(request.headers && { headers: Object.keys(request.headers) }),
    sealed: sealer.seal(labelOf(jobId, name), JSON.stringify(request)),
  };
}

/**
 * For a job that will fetch and put nothing: what is shown stays. Undefined if it has no secrets.
 */
export function withoutSecrets<Payload extends Queued & { readonly source: QueuedSource }>(
  payload: Payload,
): Payload | undefined {
  const source = withoutHeaders(payload.source);
  if (payload.destinations === undefined)
    return source === payload.source ? undefined : { ...payload, source };
  const { job, outputs = {} } = payload.destinations;
  const shown = ({ url, headers }: SealedDestination): SealedDestination => ({ url, headers });
  const own = Object.entries(outputs).map(([name, destination]) => [name, shown(destination)]);
  const destinations = { ...(job && { job: shown(job) }), outputs: Object.fromEntries(own) };
  return { ...payload, source, destinations };
}

function withoutDestination<Output>(output: Output): Output {
  return { ...output, destination: undefined };
}

/** The destinations as requested. */
export function openDestinations(
  sealer: Sealer,
  jobId: string,
  { output, outputs, destinations }: Queued,
): AskedDestinations {
  const { job, outputs: own = {} } = destinations ?? {};
  const open = (sealed: SealedDestination | undefined, name?: string): DestinationRequest | undefined =>
    sealed && opened(sealer, labelOf(jobId, name), sealed);
  const destination = open(job);
  return {
    ...(output === undefined
      ? { outputs: outputs?.map((asked) => ({ ...asked, destination: open(own[asked.name], asked.name) })) }
      : {
          output:
            output.format === 'probe'
              ? output
              : { ...output, destination: open(own[ONLY_OUTPUT], ONLY_OUTPUT) },
        }),
    ...(destination && { destination }),
  };
}

/** An output's destination: that of its latest replay, its own, or the job's. */
export function destinationOf(
  queued: Queued,
  name: string,
  replay?: DestinationReplay,
): Pick<SealedDestination, 'url' | 'headers'> | undefined {
  const found = replay?.address ?? queued.destinations?.outputs?.[name] ?? queued.destinations?.job;
  return found && { url: placed(found.url, queued, name), ...(found.headers && { headers: found.headers }) };
}

function placed(url: string, queued: Queued, name: string): string {
  const output = outputsOf(queued).find((one) => one.name === name);
  return output === undefined ? url : filledIn(url, { name, extension: fileKindOf(output).extension });
}

/** A destination with its secrets. @throws if SECRET_KEY has changed since the request */
export function openDestination(
  sealer: Sealer,
  jobId: string,
  queued: Queued,
  name: string,
  replay?: DestinationReplay,
): DestinationRequest | undefined {
  const own = replay?.address ?? queued.destinations?.outputs?.[name];
  const sealed = own ?? queued.destinations?.job;
  if (sealed === undefined) return undefined;
  const { url, ...rest } = opened(sealer, labelOf(jobId, own && name), sealed);
  return { ...rest, url: placed(url, queued, name) };
}

function opened(sealer: Sealer, label: string, { sealed }: SealedDestination): DestinationRequest {
  if (sealed === undefined) throw new SecretsForgotten('its destination is not kept');
  return DestinationRequest.parse(JSON.parse(sealer.open(label, sealed)));
}

/** A presigned address carries its secret in the query, so that is hidden. */
export function withoutQuery(url: string): string {
  const [base = ''] = url.split(/[?#]/, 1);
  return base;
}
