/** One job: its progress while it runs, then its result, or why there is none. */
import { ViewHead } from '../../ui.tsx';

export function JobView({ jobId }: { readonly jobId: string }) {
  return (
    <section id="view-job" class="view" aria-labelledby="job-title">
      <ViewHead id="job" title={jobId} />
    </section>
  );
}
