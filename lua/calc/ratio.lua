-- Measured over predicted: 1 means the prediction held.
local formula = require("formula").formula

return formula {
  name = "ratio", unit = "1",
  formula = "measured / predicted",
  symbols = {
    measured  = { unit = "tok/s", help = "what the run saw" },
    predicted = { unit = "tok/s", help = "what the formula said, with the bandwidth probed around each trial" },
  },
  valid = "both of one condition and one machine",
  compute = function(x) return x.measured / x.predicted end,
}
