-- Schedules: when the requests of a cell are sent. workload = tally.chat { …, schedule = tally.open { rate = 2 } }.
local core = require "tally_core"
local schema = require "schema"
local schedule = {}

-- Reads t by the plan's table of fields and says which kind it is.
local function of(kind)
  return function(t)
    local f = core.plan_fields("workload.schedule.")
    f.kind = nil
    schema.check(t, f, "schedule")
    t.kind = kind
    return t
  end
end

-- N users (workload.concurrency), each waits for the answer, thinks, and asks again.
schedule.closed = of "closed"
-- Requests come at their times whatever the server does: tally.open { rate = 2, arrival = "poisson" }.
schedule.open = of "open"
-- A recorded day again: tally.trace { file = "traces/chat.jsonl", speed = 2 }.
schedule.trace = of "trace"
-- The largest load that keeps a promise: tally.search { over = "users", from = 1, to = 64, slo = "ttft<2s@95%" }.
schedule.search = of "search"

return schedule
