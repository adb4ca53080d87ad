/** bull-board's adapter with jobs that hold only what is listed. Its own formatters leave failures, stacks and options as they are. */
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { shownJob } from './shown.ts';

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

  /** The service writes none. */
  override async getJobLogs(): Promise<string[]> {
    return [];
  }

  override async getFlowProducer(): Promise<FlowProducer | null> {
    const producer = await super.getFlowProducer();
    const getFlow: FlowProducer['getFlow'] = async (asked) => discreetTree(await producer?.getFlow(asked));
    return producer && Object.create(producer, { getFlow: { value: getFlow } });
  }
}

/** bull-board reads a job's JSON; in a flow also its progress and the failures of its children. */
function discreet(job: Job): Job {
  const json = shownJob({ ...job.toJSON() });
  return Object.defineProperties(job, {
    toJSON: { value: () => json },
    progress: { value: json.progress ?? 0 },
    getIgnoredChildrenFailures: { value: async () => ({}) },
  });
}

function discreetTree(tree: Tree | undefined): Tree {
  if (tree?.job) discreet(tree.job);
  for (const child of tree?.children ?? []) discreetTree(child);
  // BullMQ's type leaves out that a job may be gone.
  return tree as Tree;
}
