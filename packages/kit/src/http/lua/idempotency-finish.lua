-- Stores the answer of a request, unless its key belongs to another one by now.
-- KEYS: record
-- ARGV: fingerprint, seed, answer
-- Returns: nothing
-- include: idempotency-answer.lua
keepAnswer(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
