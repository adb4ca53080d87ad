-- Defines what scripts call BullMQ's keys, and our fields in the hash of an extraction.
-- KEYS: none
-- ARGV: none
-- Returns: nothing
-- Before the id of an extraction.
local EXTRACTION = '{soundpost}:extract:' -- recordKey('extract', '') in bullmq-internals.ts
-- BullMQ takes no larger priority.
local LARGEST_PRIORITY = 2097151
local CANCELLED = 'spCancelled' -- own.cancelled in bullmq-internals.ts
local ATTEMPTS = 'spAttempts' -- own.attempts in bullmq-internals.ts
local CONFIRMED = 'spConfirmed' -- own.confirmed in bullmq-internals.ts
-- The fields below are known to scripts alone. The highest progress written so far:
local PROGRESS_FLOOR = 'spProgress'
-- Id of the worker process that works on the job (src/jobs/worker-registry.ts), left behind when
-- it dies, or loses the job:
local WORKING = 'spWorking'
-- Those that left it behind and have not been heard of since: `<id>@<Redis' TIME in ms>`,
-- separated by commas.
local LEFT_BY = 'spLeftBy'
-- Its API has answered that nothing was accepted; DROPPED once a worker has acted on it.
local REFUSED = 'spRefused'
local NOT_ACCEPTED = '1'
local DROPPED = '2'
