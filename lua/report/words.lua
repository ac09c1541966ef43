-- words: what metrics and figure parts are called, by language. One place, so that a series calls things alike.
local words = {}

local metrics = {
  bytes_per_token   = { zh = "每個 token 讀取的位元組", hans = "每个 token 读取的字节", en = "bytes read per token" },
  decode_rate       = { zh = "生成速度", hans = "生成速度", en = "decode speed" },
  prefill_rate      = { zh = "讀 prompt 的速度", hans = "读 prompt 的速度", en = "prefill speed" },
  ttft              = { zh = "首 token 時間（TTFT）", hans = "首 token 时间（TTFT）", en = "time to first token (TTFT)" },
  tpot              = { zh = "每個 token 的時間（TPOT）", hans = "每个 token 的时间（TPOT）", en = "time per output token (TPOT)" },
  e2e               = { zh = "端到端時間", hans = "端到端时间", en = "end-to-end time" },
  predicted         = { zh = "推算（量之前存下）", hans = "推算（量之前存下）", en = "predicted, stored before the run" },
  predicted_paired  = { zh = "推算（配對的頻寬）", hans = "推算（配对的带宽）", en = "predicted from the paired bandwidth" },
  bandwidth_paired  = { zh = "前後量到的讀取頻寬", hans = "前后量到的读取带宽", en = "read bandwidth probed around it" },
  implied_bandwidth = { zh = "速度 × 位元組", hans = "速度 × 字节", en = "speed × bytes" },
  ratio             = { zh = "實測 ÷ 推算", hans = "实测 ÷ 推算", en = "measured ÷ predicted" },
  model             = { zh = "模型", hans = "模型", en = "model" },
}

local parts = {
  measured = { zh = "實測（95 % 區間）", hans = "实测（95 % 区间）", en = "measured (95 % interval)" },
}

local function pick(entry, lang)
  if not entry then return nil end
  if lang == "zh-Hans" then return entry.hans or entry.zh end
  if lang == "en" then return entry.en end
  return entry.zh
end

function words.metric(name, lang) return pick(metrics[name], lang) or name end
function words.part(name, lang) return pick(parts[name], lang) or name end

-- The language's text of { zh=, en=, ... } as experiments write it; falls back to any that is there.
function words.text(t, lang)
  if type(t) ~= "table" then return t end
  if lang == "en" then return t.en or t.zh or t["zh-Hant"] or t["zh-Hans"] end
  return t[lang] or t.zh or t["zh-Hant"] or t["zh-Hans"] or t.en
end

return words
