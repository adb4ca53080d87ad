-- Defines the names of BullMQ's keys and of our fields in an extraction's hash.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
-- Prefix of an extraction's id.
local EXTRACTION = '{soundpost}:extract:' -- recordKey('extract', '') in bullmq-internals.ts
-- BullMQ's largest priority.
local LARGEST_PRIORITY = 2097151
local CANCELLED = 'spCancelled' -- own.cancelled in bullmq-internals.ts
local ATTEMPTS = 'spAttempts' -- own.attempts in bullmq-internals.ts
local CONFIRMED = 'spConfirmed' -- own.confirmed in bullmq-internals.ts
local TENANT = 'spTenant' -- own.tenant in bullmq-internals.ts
local NAMES = 'spNames' -- own.names in bullmq-internals.ts
-- Only scripts use the fields below. The highest progress written so far:
local PROGRESS_FLOOR = 'spProgress'
-- Id of the worker process on the job (src/jobs/worker-registry.ts); stays if it dies or loses the
-- job:
local WORKING = 'spWorking'
-- Processes that left it and have been silent since: `<id>@<Redis' TIME in ms>`, comma-separated.
local LEFT_BY = 'spLeftBy'
-- Processor time of all attempts, ms:
local PROCESSOR = 'spProcessorMs'
-- It is in its key's usage of the day:
local COUNTED = 'spCounted'
-- It was not confirmed in time: a worker removes it.
local DROPPED = 'spDropped'
