/** What tus 1.0 refuses with a status that no code of the catalogue has. */
import type { ServiceError } from 'soundpost-contract/errors';

export class TusRefusal extends Error {
  override readonly name = 'TusRefusal';
  readonly httpStatus: number;
  readonly refusal: ServiceError;

  constructor(httpStatus: number, refusal: ServiceError) {
    super(refusal.message, { cause: refusal });
    this.httpStatus = httpStatus;
    this.refusal = refusal;
  }
}
