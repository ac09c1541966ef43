-- Day 17: how many people can it serve? The answer is a sentence: the largest number of users who all get what they were
-- promised, and the promise that the next one breaks. Two engines are compared: one that serves one request at a time,
-- and one that serves four.
local tally = require "tally"

return tally.experiment {
  id       = "users-served", map = "capacity", day = 17,
  title    = { zh = "一台機器能服務幾個人？", en = "How many people can it serve?" },
  question = { zh = "同時最多幾位使用者，仍有 90 % 的請求在 1 秒內看到第一個字，且每個字不超過 80 毫秒？",
               en = "Up to how many users at once do 90 % of the requests see a first token within 1 s, and tokens within 80 ms?" },
  axes     = { slots = { 1, 4 },
               model = tally.models { tally.synth { name = "small-q4_0", size = "100MB", quant = "q4_0", answer = 200, context = 4096 } } },
  engine   = { context = 512, slots = tally.axis "slots" },
  workload = tally.completion { prompt_tokens = 64, output_tokens = 24, cache = "cold",
    schedule = tally.search { over = "users", from = 1, to = 32, slo = "ttft<1s@90%, tpot<80ms@90%" } },
  repeats  = { min = 2, max = 2, until_ci = 0.5 },
}
