/**
 * bull-board's adapter, out of which jobs come with what is listed alone. Its own formatters know three fields; a job has more: why it failed, the stack, and options with what
 * the caller's systems wrote into `tracestate`.
 */
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { shownJob, shownProgress } from './shown.ts';

type Job = NonNullable<Awaited<ReturnType<BullMQAdapter['getJob']>>>;
type FlowProducer = NonNullable<Awaited<ReturnType<BullMQAdapter['getFlowProducer']>>>;
type Tree = Awaited<ReturnType<FlowProducer['getFlow']>>;

export class DiscreetAdapter extends BullMQAdapter {
  override async getJob(id: string): Promise<Job | undefined> {
    const job = await super.getJob(id);
    return job && discreet(job);
  }

  override async getJobs(...asked: Parameters<BullMQAdapter['getJobs']>): Promise<Job[]> {
    return (await super.getJobs(...asked)).map(discreet);
  }

  /** The service writes none; what somebody else wrote is not known. */
  override async getJobLogs(): Promise<string[]> {
    return [];
  }

  override async getFlowProducer(): Promise<FlowProducer | null> {
    const producer = await super.getFlowProducer();
    if (producer === null) return null;
    const getFlow: FlowProducer['getFlow'] = async (asked) => discreetTree(await producer.getFlow(asked));
    return Object.create(producer, { getFlow: { value: getFlow } });
  }
}

/** What the board reads of a job: its JSON, and in a flow two things more. The job was fetched for this answer and is nobody else's. */
function discreet(job: Job): Job {
  const whole = job.toJSON.bind(job);
  return Object.defineProperties(job, {
    toJSON: { value: () => shownJob({ ...whole() }) },
    getIgnoredChildrenFailures: { value: async () => ({}) },
  });
}

function discreetTree(tree: Tree | undefined): Tree {
  // BullMQ's type leaves out that a job may be gone.
  if (tree?.job === undefined) return tree as unknown as Tree;
  discreet(tree.job).progress = shownProgress(tree.job.progress) ?? 0;
  for (const child of tree.children ?? []) discreetTree(child);
  return tree;
}
